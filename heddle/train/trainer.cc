// The loop: updates, validation, snapshots, and the end of a run.
#include "heddle/train/trainer.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>

#include "heddle/base/files.h"
#include "heddle/base/log.h"
#include "heddle/base/progress.h"
#include "heddle/base/signals.h"
#include "heddle/data/batches.h"
#include "heddle/infer/model_dir.h"
#include "heddle/infer/precision.h"
#include "heddle/train/corpora.h"
#include "heddle/train/run_log.h"
#include "heddle/train/state.h"
#include "heddle/train/translation.h"
#include "heddle/train/validation.h"

namespace heddle::train {
namespace {

using Clock = std::chrono::steady_clock;

// What one log line sums up.
struct Window {
  LossSums sums;
  double gradient_norm = 0;  // sum over updates
  int64_t updates = 0;
  Clock::time_point begin = Clock::now();
};

class Trainer {
 public:
  Trainer(const TrainConfig& config, const RunOptions& options)
      : config_(config),
        out_(options.out),
        state_(join_path(options.out, "state")),
        corpora_(open_corpora(config, options.data, options.out)),
        parameters_(static_cast<uint64_t>(config.seed)),
        model_(nn::Scope(parameters_), config.model),
        optimizer_(parameters_, config.optimizer_options()),
        validator_(corpora_.val, corpora_.tokenizer, validation_options(config)) {
    run_.compute = resolve_precision(config.precision);
    run_.seed = static_cast<uint64_t>(config.seed);
  }

  RunResult run() {
    begin();
    if (p_.finished && limit_reached()) return result(true, false);
    p_.finished = false;
    install_signal_handlers();
    Progress progress("training", fraction());
    while (!limit_reached() && !stops_early()) {
      update();
      if (p_.update % config_.log_every == 0) log_window();
      if (progress.is_due()) progress.update(fraction(), status());
      if (pending_signal() != 0) {
        save();
        return result(false, true);
      }
      if (p_.update % config_.validate_every == 0) {
        validate();
        save();
      } else if (p_.update % config_.checkpoint_every == 0) {
        save();
      }
    }
    if (p_.validated_update != p_.update || p_.best_update == 0) validate();
    p_.finished = true;
    save();
    return result(false, false);
  }

 private:
  static ValidationOptions validation_options(const TrainConfig& c) {
    return {.batch_tokens = c.batch_tokens,
            .wants_bleu = c.needs_bleu(),
            .translate = {.beam = c.validation_beam, .precision = resolve_precision(c.precision)}};
  }

  // Loads the state, if there is one, and opens the log behind what it knows.
  void begin() {
    const std::string log_path = join_path(out_, "log.jsonl");
    const double logged = last_logged_seconds(log_path);
    if (auto saved = state_.load(parameters_, optimizer_)) {
      p_ = *saved;
      check(p_.corpus == corpora_.train.key(), ErrorKind::data,
            "{}: the training text is not the one that this run began with; restore it, or start "
            "anew with --overwrite",
            out_);
      if (p_.machine != machine_signature(run_.compute)) {
        log_warning(
            "this run was saved on '{}', this is '{}': the result will differ in its last "
            "bits",
            p_.machine, machine_signature(run_.compute));
      }
      if (!p_.finished) log_info("resuming {} at update {}", out_, p_.update);
    }
    p_.corpus = corpora_.train.key();
    p_.machine = machine_signature(run_.compute);
    p_.seconds = std::max(p_.seconds, logged);
    seconds_before_ = p_.seconds;
    log_.emplace(log_path, p_.log_bytes);
  }

  double seconds() const {
    return seconds_before_ + std::chrono::duration<double>(Clock::now() - begin_).count();
  }

  double fraction() const {
    double done = 0;
    if (config_.max_updates > 0) {
      done = static_cast<double>(p_.update) / static_cast<double>(config_.max_updates);
    }
    if (config_.max_minutes > 0) done = std::max(done, seconds() / (60 * config_.max_minutes));
    return std::min(1.0, done);
  }

  bool limit_reached() const { return fraction() >= 1; }

  bool stops_early() const {
    return config_.early_stop != "none" && p_.without_better >= config_.patience;
  }

  // One update: the next batch in `accumulate` parts, whose gradients are summed in order.
  void update() {
    const PairLengths lengths{corpora_.train.source_lengths(), corpora_.train.target_lengths()};
    if (plan_epoch_ != p_.epoch) {
      plan_ = plan_epoch(lengths,
                         {.batch_tokens = config_.batch_tokens,
                          .sort_pool = config_.sort_pool,
                          .seed = static_cast<uint64_t>(config_.seed)},
                         p_.epoch);
      plan_epoch_ = p_.epoch;
    }
    run_.training = true;
    run_.update = static_cast<uint64_t>(p_.update + 1);
    const auto shards = split_batch(lengths, plan_.batch(p_.batch), config_.accumulate);
    LossSums sums;
    for (const auto& pairs : shards) sums += accumulate(pairs);
    const double words = static_cast<double>(sums.words);
    const double norm = optimizer_.gradient_norm() / words;
    if (!std::isfinite(sums.loss) || !std::isfinite(norm)) report_bad_tensor(shards);
    double factor = 1 / words;
    if (config_.clip_norm > 0 && norm > config_.clip_norm) factor *= config_.clip_norm / norm;
    optimizer_.step(learning_rate(config_.schedule_options(), p_.update + 1), factor);
    ++p_.update;
    if (++p_.batch == plan_.size()) {
      ++p_.epoch;
      p_.batch = 0;
    }
    window_.sums += sums;
    window_.gradient_norm += norm;
    ++window_.updates;
  }

  LossSums accumulate(std::span<const int64_t> pairs) {
    return accumulate_gradients(model_, make_translation_batch(corpora_.train, pairs, special_),
                                run_, config_.label_smoothing);
  }

  // Runs the batch again with every output checked. The weights are still those before the update.
  [[noreturn]] void report_bad_tensor(const std::vector<std::vector<int64_t>>& shards) {
    const std::string bad_gradient = optimizer_.first_bad_gradient();
    for (const auto& p : parameters_.all()) {
      p->grad() = Tensor();
      check(kernels().all_finite(p->value().rows()), ErrorKind::data,
            "update {}: the weight '{}' is not finite; the last good state is in {}/state",
            p_.update + 1, p->name(), out_);
    }
    set_check_finite(true);
    try {
      for (const auto& pairs : shards) accumulate(pairs);
    } catch (const Error& e) {
      set_check_finite(false);
      fail(ErrorKind::data,
           "update {}: the loss is not finite: {}. The last good state is in {}/state",
           p_.update + 1, e.what(), out_);
    }
    set_check_finite(false);
    fail(ErrorKind::data,
         "update {}: the gradient of '{}' is not finite; lower the learning rate, clip gradients, "
         "or "
         "compute in f32. The last good state is in {}/state",
         p_.update + 1, bad_gradient, out_);
  }

  std::string status() const {
    const double words = static_cast<double>(std::max<int64_t>(1, window_.sums.words));
    const double elapsed = std::chrono::duration<double>(Clock::now() - window_.begin).count();
    return fmt::format("epoch {}  update {}  loss {:.3f}  {} tok/s", p_.epoch + 1, p_.update,
                       window_.sums.loss / words,
                       format_count(static_cast<int64_t>(words / std::max(elapsed, 1e-9))));
  }

  void log_window() {
    const double elapsed = std::chrono::duration<double>(Clock::now() - window_.begin).count();
    const auto words = static_cast<double>(window_.sums.words);
    Json line = Json::object();
    line["update"] = p_.update;
    line["epoch"] = p_.epoch;
    line["loss"] = window_.sums.loss / words;
    line["nll"] = window_.sums.nll / words;
    line["gradient_norm"] = window_.gradient_norm / static_cast<double>(window_.updates);
    line["learning_rate"] = learning_rate(config_.schedule_options(), p_.update);
    line["tokens_per_second"] = std::round(words / elapsed);
    line["seconds"] = std::round(seconds() * 10) / 10;
    log_->write(line);
    window_ = Window();
  }

  ValidationScore score_of(std::vector<Tensor> weights) {
    const WeightSwap swap(parameters_, std::move(weights));
    return validator_(model_, run_);
  }

  std::vector<Tensor> ema() const {
    std::vector<Tensor> values;
    for (const Moments& m : optimizer_.moments()) values.push_back(m.ema.clone());
    return values;
  }

  bool is_better(const ValidationScore& s) const {
    if (p_.best_update == 0) return true;
    return config_.select == "bleu" ? s.bleu > p_.best_bleu : s.loss < p_.best_loss;
  }

  // Scores the weights, their moving average and the average of kept ones; the best goes to best/.
  void validate() {
    ++p_.without_better;
    p_.validated_update = p_.update;
    const ValidationScore snapshot = validator_(model_, run_);
    save_model_dir(join_path(out_, "last"), config_.model, parameters_, &corpora_.tokenizer);
    consider("snapshot", snapshot, {});
    if (config_.ema_decay > 0) consider("ema", score_of(ema()), ema());
    if (config_.average != "none") {
      keep(snapshot);
      if (p_.kept.size() > 1) {
        const auto mean = [this] { return state_.average(p_.kept, parameters_); };
        consider("average", score_of(mean()), mean());
      }
    }
    window_.begin = Clock::now();  // validation is no training time
  }

  void consider(const std::string& kind, const ValidationScore& s, std::vector<Tensor> weights) {
    const bool better = is_better(s);
    Json line = Json::object();
    line["update"] = p_.update;
    line["validation"] = kind;
    line["loss"] = s.loss;
    if (s.bleu >= 0) line["bleu"] = s.bleu;
    line["best"] = better;
    line["seconds"] = std::round(seconds() * 10) / 10;
    log_->write(line);
    log_info("update {}  {:8}  validation loss {:.4f}{}{}", p_.update, kind, s.loss,
             s.bleu >= 0 ? fmt::format("  BLEU {:.2f}", s.bleu) : "", better ? "  *" : "");
    if (!better) return;
    p_.best_update = p_.update;
    p_.best_kind = kind;
    p_.best_loss = s.loss;
    p_.best_bleu = s.bleu;
    p_.without_better = 0;
    std::optional<WeightSwap> swap;
    if (!weights.empty()) swap.emplace(parameters_, std::move(weights));
    save_model_dir(join_path(out_, "best"), config_.model, parameters_, &corpora_.tokenizer);
  }

  // Keeps the weights for the average: the last, or the best, average_count of all validations.
  void keep(const ValidationScore& s) {
    state_.keep_weights(p_.update, parameters_);
    p_.kept.push_back({p_.update, s.loss, s.bleu});
    if (static_cast<int64_t>(p_.kept.size()) <= config_.average_count) return;
    auto worst = p_.kept.begin();
    if (config_.average == "best") {
      worst =
          std::max_element(p_.kept.begin(), p_.kept.end(), [this](const auto& a, const auto& b) {
            return config_.select == "bleu" ? a.bleu > b.bleu : a.loss < b.loss;
          });
    }
    p_.kept.erase(worst);
  }

  void save() {
    p_.seconds = seconds();
    p_.log_bytes = log_->bytes();
    state_.save(p_, parameters_, optimizer_);
  }

  RunResult result(bool was_finished, bool was_interrupted) const {
    return {.updates = p_.update,
            .seconds = was_finished ? p_.seconds : seconds(),
            .best_kind = p_.best_kind,
            .best_loss = p_.best_loss,
            .best_bleu = p_.best_bleu,
            .was_finished = was_finished,
            .was_interrupted = was_interrupted};
  }

  TrainConfig config_;
  std::string out_;
  StateFolder state_;
  Corpora corpora_;
  nn::Parameters parameters_;
  Transformer model_;
  Optimizer optimizer_;
  Validator validator_;
  nn::Run run_;
  SpecialIds special_{static_cast<int32_t>(config_.model.decoder_start_token_id),
                      static_cast<int32_t>(config_.model.eos_token_id)};
  Progression p_;
  std::optional<RunLog> log_;
  BatchPlan plan_;
  int64_t plan_epoch_ = -1;
  Window window_;
  Clock::time_point begin_ = Clock::now();
  double seconds_before_ = 0;
};

std::string config_path(const std::string& run) { return join_path(run, "train.json"); }

void check_same_config(const TrainConfig& stored, const TrainConfig& wanted,
                       const std::string& run) {
  for (const FieldDifference& d : diff_fields(stored, wanted)) {
    check(is_limit(d.key), ErrorKind::usage,
          "{} was begun with {} {}, not {}; use the same, or start anew with --overwrite", run,
          flag_name(d.key), d.first, d.second);
  }
}

void check_empty(const std::string& run) {
  if (!path_exists(run)) return;
  check(list_directory(run).empty(), ErrorKind::usage,
        "{} is not empty and holds no run of heddle; choose another --out", run);
}

}  // namespace

bool is_run(const std::string& run) { return path_exists(config_path(run)); }

TrainConfig stored_config(const std::string& run) { return load_config(config_path(run)); }

RunResult train_translation(const TrainConfig& config, const RunOptions& options) {
  config.check(options.out);
  if (is_run(options.out) && options.overwrite) {
    for (const char* name :
         {"state", "last", "best", "cache", "data", "log.jsonl", "tokenizer.model", "train.json"}) {
      remove_path(join_path(options.out, name));
    }
  }
  if (is_run(options.out)) {
    check_same_config(stored_config(options.out), config, options.out);
  } else {
    check_empty(options.out);
    make_directories(options.out);
  }
  write_file_atomic(config_path(options.out), to_json(config).dump(2) + "\n");
  return Trainer(config, options).run();
}

}  // namespace heddle::train
