// The loop: updates, validation, snapshots, and the end of a run.
#include "heddle/train/trainer.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <memory>
#include <optional>
#include <utility>

#include "heddle/base/files/files.h"
#include "heddle/base/log.h"
#include "heddle/base/names.h"
#include "heddle/base/profile.h"
#include "heddle/base/progress.h"
#include "heddle/base/signals.h"
#include "heddle/infer/loading/loaded_model.h"
#include "heddle/train/run/state.h"
#include "heddle/train/tasks/task.h"
#include "heddle/train/update_cost.h"

namespace heddle::train {
namespace {

using Clock = std::chrono::steady_clock;
using Parts = std::vector<std::vector<int64_t>>;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// How much of its limits a run has used up; 1: it is at its end.
double limit_share(const TrainConfig& c, int64_t update, double seconds) {
  double done = 0;
  if (c.max_updates > 0) done = static_cast<double>(update) / static_cast<double>(c.max_updates);
  if (c.max_minutes > 0) done = std::max(done, seconds / (60 * c.max_minutes));
  return std::min(1.0, done);
}

bool is_at_end(const TrainConfig& c, const Progression& p, double seconds) {
  return limit_share(c, p.update, seconds) >= 1 ||
         (c.early_stop != "none" && p.without_better >= c.patience);
}

RunResult make_result(const Progression& p, double seconds) {
  return {.updates = p.update, .seconds = seconds, .best_kind = p.best_kind, .best = p.best};
}

class Trainer {
 public:
  Trainer(const TrainConfig& config, const RunOptions& options, StateFolder& state)
      : config_(config),
        out_(options.out),
        replaces_(keeps_replaced(options.out)),
        on_event_(options.on_event),
        state_(state),
        task_(config.task_config->make(config, options.paths, options.out)),
        parameters_(task_->parameters()),
        optimizer_(parameters_, config.optimizer_options()) {
    for (size_t i = 0; i < parameters_.all().size(); ++i) {
      optimizer_.set_rate_factor(i, task_->rate_factor(*parameters_.all()[i]));
    }
    run_.use(resolve_precision(config.precision));
    run_.dropout.seed = static_cast<uint64_t>(config.seed);
    run_.recompute = config.recompute;
  }

  /// Loads the state, if there is one, and opens the log behind what it knows. Errors: data if the
  /// data are not those that the run began with.
  void begin() {
    const double noted = state_.noted_seconds();
    NamedTensors carried;
    const auto accept = [this](const Progression& saved) {
      check_same_data(saved.corpus, task_->training_key(), "training");
      check_same_data(saved.validation, task_->validation_key(), "validation");
    };
    if (auto saved = state_.load(parameters_, optimizer_, &carried, accept)) {
      p_ = *saved;
      warn_of_differences();
      task_->parameters_changed();
      task_->carry_on(carried, p_.epoch, p_.batch);
      log_info("resuming {} at update {}", out_, p_.update);
    }
    p_.finished = false;
    p_.corpus = task_->training_key();
    p_.validation = task_->validation_key();
    p_.machine = machine_signature(run_.compute);
    p_.version = version();
    p_.seconds = std::max(p_.seconds, noted);
    seconds_before_ = p_.seconds;
    begin_ = Clock::now();
    note_seconds();
    log_.emplace(join_path(out_, "log.jsonl"), p_.log_bytes);
  }

  /// To be called behind begin().
  RunResult run() {
    install_signal_handlers();
    Progress progress("train", share());
    while (true) {
      // Here and not behind the update, so that a run that was stopped there validates first.
      if (is_validation_due()) {
        validate();
        save();
        tell(RunEvent::validation);
      }
      if (pending_signal() != 0) return interrupted();
      if (is_at_end(config_, p_, seconds())) break;
      update();
      if (progress.is_due()) progress.update(share(), status());
      if (p_.update % config_.log_every == 0 || is_at_end(config_, p_, seconds())) {
        log_window();
        tell(RunEvent::log);
      }
      if (pending_signal() == 0 && p_.update % config_.checkpoint_every == 0 &&
          !is_validation_due()) {
        save();
      }
      note_seconds();
    }
    if (p_.window.updates > 0) log_window();  // the minutes ran out just now
    if (p_.validated_update != p_.update || p_.best_kind.empty()) validate();
    task_->finish(join_path(out_, "best"));
    p_.finished = true;
    save();
    tell(RunEvent::end);
    return make_result(p_, p_.seconds);
  }

 private:
  // Equal bits are promised for one program on one kind of machine.
  void warn_of_differences() const {
    if (p_.machine != machine_signature(run_.compute)) {
      log_warning(
          "this run was saved on '{}', this is '{}': the result will differ in its last bits",
          p_.machine, machine_signature(run_.compute));
    }
    if (p_.version != version()) {
      log_warning(
          "this run was saved by {}, this is heddle {}: the result may differ from that of one "
          "version alone",
          p_.version.empty() ? "an older heddle" : "heddle " + p_.version, version());
    }
  }

  void check_same_data(const std::string& saved, const std::string& key, const char* what) {
    check(saved.empty() || saved == key, ErrorKind::data,
          "{}: the {} data{}{} are not what this run began with; restore them, or start anew with "
          "`overwrite`",
          out_, what, key.find(" on ") == key.npos ? "" : ", or the model begun from,",
          key.find(" taught ") == key.npos ? "" : ", or the teacher,");
  }

  void tell(RunEvent event) const {
    if (on_event_) on_event_(event);
  }

  RunResult interrupted() {
    save();
    tell(RunEvent::end);
    RunResult result = make_result(p_, p_.seconds);
    result.was_interrupted = true;
    return result;
  }

  double seconds() const { return seconds_before_ + seconds_since(begin_); }
  double share() const { return limit_share(config_, p_.update, seconds()); }

  // Once a second, for a kill before the next save.
  void note_seconds() {
    if (seconds() < next_note_) return;
    next_note_ = seconds() + 1;
    state_.note_seconds(seconds());
  }

  bool is_validation_due() const {
    return p_.update > 0 && p_.update % config_.validate_every == 0 &&
           p_.validated_update != p_.update;
  }

  // One update: the next batch in `accumulate` parts, whose gradients are summed in order.
  void update() {
    const ProfilePhase phase("update");
    const Clock::time_point begin = Clock::now();
    const int64_t batches = task_->batches(p_.epoch);
    run_.dropout.training = true;
    run_.dropout.update = static_cast<uint64_t>(p_.update + 1);
    const Parts parts = task_->parts(p_.epoch, p_.batch, config_.accumulate);
    LossSums sums;
    cost_.begin();
    for (const auto& samples : parts) sums += task_->accumulate(p_.epoch, samples, run_);
    cost_.end(parameters_, optimizer_, sums.tokens);
    // A batch may have no token to predict: all of its tokens are special.
    const auto tokens = static_cast<double>(std::max<int64_t>(1, sums.predicted));
    const double norm = optimizer_.gradient_norm() / tokens;
    if (!std::isfinite(sums.loss) || !std::isfinite(norm)) report_bad_tensor(parts);
    double factor = 1 / tokens;
    if (config_.clip_norm > 0 && norm > config_.clip_norm) factor *= config_.clip_norm / norm;
    optimizer_.step(learning_rate(config_.schedule_options(), p_.update + 1), factor);
    task_->parameters_changed();
    ++p_.update;
    if (++p_.batch == batches) {
      ++p_.epoch;
      p_.batch = 0;
    }
    LogWindow& w = p_.window;
    w += sums;
    w.gradient_norm += norm;
    ++w.updates;
    w.seconds += seconds_since(begin);
  }

  std::string last_good() const {
    if (!state_.holds_state()) return "no state was saved yet";
    return fmt::format("the last good state is in {}", join_path(out_, "state"));
  }

  void check_weights() {
    for (const auto& p : parameters_.all()) {
      check(kernels().all_finite(p->value().rows()), ErrorKind::data,
            "update {}: the weight '{}' is not finite; lower the learning rate. {}", p_.update,
            p->name(), last_good());
    }
  }

  // Runs `compute` again with every output checked, and fails with the name of the first bad one.
  template <class F>
  void name_bad_tensor(const char* what, const F& compute) {
    set_check_finite(true);
    try {
      compute();
    } catch (const Error& e) {
      set_check_finite(false);
      fail(ErrorKind::data, "update {}: the {} is not finite: {}. {}", p_.update + 1, what,
           e.what(), last_good());
    }
    set_check_finite(false);
  }

  // The weights are still those before the update.
  [[noreturn]] void report_bad_tensor(const Parts& parts) {
    const std::string bad_gradient = optimizer_.first_bad_gradient();
    for (const auto& p : parameters_.all()) p->grad() = Tensor();
    check_weights();
    name_bad_tensor("loss", [&] {
      for (const auto& samples : parts) task_->accumulate(p_.epoch, samples, run_);
    });
    fail(ErrorKind::data,
         "update {}: the gradient of '{}' is not finite; lower the learning rate, clip gradients, "
         "or compute in f32. {}",
         p_.update + 1, bad_gradient, last_good());
  }

  // Short enough to leave room for a bar in 80 columns.
  std::string status() {
    const LogWindow& w = p_.window;
    const double tokens = static_cast<double>(std::max<int64_t>(1, w.predicted));
    return fmt::format("epoch {}  loss {:.3f}  {}", p_.epoch + 1, w.loss / tokens,
                       cost_.speed(per_second(), counted(), run_.compute));
  }

  const char* counted() const { return config_.task_config->facts().counted; }
  double per_second() const {
    return static_cast<double>(p_.window.tokens) / std::max(p_.window.seconds, 1e-9);
  }

  void log_window() {
    const LogWindow& w = p_.window;
    const auto tokens = static_cast<double>(std::max<int64_t>(1, w.predicted));
    log_->write(
        Json::object({{"update", p_.update},
                      {"epoch", p_.epoch + 1},
                      {"loss", w.loss / tokens},
                      {"nll", w.nll / tokens},
                      {"gradient_norm", w.gradient_norm / static_cast<double>(w.updates)},
                      {"learning_rate", learning_rate(config_.schedule_options(), p_.update)},
                      {fmt::format("{}_per_second", counted()), std::round(per_second())},
                      {"share_of_peak", cost_.share_of_peak(per_second(), run_.compute)},
                      {"seconds", std::round(seconds() * 10) / 10}}));
    p_.window = LogWindow();
  }

  ValidationScore validate_plainly() {
    nn::Run plain = run_;
    plain.dropout.training = false;
    return task_->validate(plain);
  }

  ValidationScore score() {
    const ValidationScore s = validate_plainly();
    if (std::isfinite(s.loss)) return s;
    check_weights();
    name_bad_tensor("validation loss", [&] { validate_plainly(); });
    fail(ErrorKind::data, "update {}: the validation loss is {}. {}", p_.update, s.loss,
         last_good());
  }

  // Scores other weights while they stand in for the model's own.
  void consider(const std::string& kind, std::vector<Tensor> weights) {
    {
      const WeightSwap swap(parameters_, std::move(weights));
      task_->parameters_changed();
      consider(kind, score());
    }
    task_->parameters_changed();
  }

  std::vector<Tensor> ema() const {
    std::vector<Tensor> values;
    for (const Moments& m : optimizer_.moments()) values.push_back(m.ema.clone());
    return values;
  }

  bool is_better(const ValidationScore& s) const {
    return p_.best_kind.empty() || s.is_better(p_.best, config_.select);
  }

  // Scores the weights, their moving average and the average of kept ones; the best goes to best/.
  void validate() {
    const ProfilePhase phase("validation");
    ++p_.without_better;
    p_.validated_update = p_.update;
    const ValidationScore snapshot = score();
    samples_ = task_->samples();
    task_->save_model(join_path(out_, "last"));
    consider("snapshot", snapshot);
    if (config_.ema_decay > 0) consider("ema", ema());
    if (config_.average != "none") {
      keep(snapshot);
      if (p_.kept.size() > 1) {
        consider("average", state_.average(p_.kept, parameters_));
      }
    }
  }

  // Logs a score; if it is the best, the weights in place go to best/.
  void consider(const std::string& kind, const ValidationScore& s) {
    const bool better = is_better(s);
    const double stop = s.cost(config_.early_stop == "none" ? "loss" : config_.early_stop);
    if (p_.best_kind.empty() || stop < p_.stop_best) {
      p_.stop_best = stop;
      p_.without_better = 0;
    }
    Json line = Json::object({{"update", p_.update}, {"validation", kind}, {"loss", s.loss}});
    std::string shown;
    for (const Metric& m : s.metrics) {
      line[m.name] = m.value;
      shown += "  " + to_text(m);
    }
    line["best"] = better;
    if (Json findings = task_->findings(); !findings.is_null()) {
      line["findings"] = std::move(findings);
    }
    for (Json& sample : std::exchange(samples_, {})) line["samples"].push_back(std::move(sample));
    line["seconds"] = std::round(seconds() * 10) / 10;
    log_->write(line);
    log_info("update {}  {:8}  validation loss {:.4f}{}{}", p_.update, kind, s.loss, shown,
             better ? "  *" : "");
    if (!better) return;
    p_.best_update = p_.update;
    p_.best_kind = kind;
    p_.best = s;
    task_->save_model(join_path(out_, "best"));
  }

  // Keeps the weights for the average: the last, or the best, average_count of all validations.
  void keep(const ValidationScore& s) {
    state_.keep_weights(p_.update, parameters_);
    p_.kept.push_back({p_.update, s});
    if (static_cast<int64_t>(p_.kept.size()) <= config_.average_count) return;
    auto worst = p_.kept.begin();
    if (config_.average == "best") {
      worst = std::ranges::max_element(
          p_.kept, {}, [this](const KeptWeights& k) { return k.score.cost(config_.select); });
    }
    p_.kept.erase(worst);
  }

  void save() {
    const ProfilePhase phase("checkpoint");
    check_weights();  // what is saved is what is gone back to
    p_.seconds = seconds();
    log_->sync();
    p_.log_bytes = log_->bytes();
    state_.save(p_, parameters_, optimizer_, task_->carried());
    if (!p_.best_kind.empty() && std::exchange(replaces_, false)) drop_replaced(out_);
  }

  TrainConfig config_;
  std::string out_;
  bool replaces_;  // the run in RUN/replaced, as long as there is no model to take its place
  std::function<void(RunEvent)> on_event_;
  StateFolder& state_;
  std::unique_ptr<Task> task_;
  nn::Parameters& parameters_;
  Optimizer optimizer_;
  std::vector<Json> samples_;  // of the weights that are logged next
  nn::Run run_;
  UpdateCost cost_;
  Progression p_;
  std::optional<RunLog> log_;
  Clock::time_point begin_ = Clock::now();
  double seconds_before_ = 0, next_note_ = 0;
};

// What a finished run says when it is started again; nothing is opened for writing.
std::optional<RunResult> finished_result(const TrainConfig& config, const std::string& run) {
  const auto p = StateFolder::peek(join_path(run, "state"));
  if (!p || !p->finished || !is_at_end(config, *p, p->seconds)) return std::nullopt;
  RunResult result = make_result(*p, p->seconds);
  result.was_finished = true;
  return result;
}

// A run that cannot begin (no such text, too large a vocabulary) leaves nothing behind, and the run
// that it was to replace as it was.
void undo_start(const std::string& run, bool replaces, bool was_there, StateFolder& state) {
  try {
    if (replaces) {
      put_back(run, state);
      log_warning("{}: the new run could not begin; the earlier one stands there again", run);
      return;
    }
    clear_run(run, state);
    remove_path(join_path(run, "state"));
    std::error_code ignored;  // what is not empty holds something that is not ours
    if (!was_there) std::filesystem::remove(run, ignored);
  } catch (const Error& e) {  // the error that is under way says more
    log_warning("{}", e.what());
  }
}

// Sets up a run that goes on, is new, or is to replace another.
std::unique_ptr<Trainer> set_up(const RunSettings& settings, const RunOptions& options,
                                bool goes_on, StateFolder& state) {
  const ProfilePhase phase("set up");
  const std::string& run = options.out;
  if (options.overwrite) {
    set_aside(run, state);
  } else if (!goes_on) {
    clear_run(run, state);
  }
  remove_temporaries(run);
  if (!goes_on) save_settings(run, settings);
  return std::make_unique<Trainer>(settings.config, options, state);
}

}  // namespace

RunResult train_model(const TrainConfig& config, const RunOptions& options) {
  const std::string& run = options.out;
  config.check("train");
  settle_replaced(run);
  const bool replaces = is_run(run) && options.overwrite, goes_on = is_run(run) && !replaces;
  RunSettings settings{config, options.paths};
  if (goes_on) {
    RunSettings stored = load_settings(run);
    check_same_config(stored.config, config, run);
    if (const auto result = finished_result(config, run)) return *result;
    lay_over(stored.paths, settings.paths);
    settings.paths = stored.paths;
  } else if (replaces) {
    check_can_replace(run, config, settings.paths);
  } else {
    check_empty(run);
  }
  check_data(config, settings.paths);
  settings.paths = made_absolute(settings.paths);
  const bool was_there = path_exists(run);
  StateFolder state(join_path(run, "state"));
  check(is_run(run) == (goes_on || replaces), ErrorKind::usage,
        "{}: another heddle has just worked here; look at what it made, then try again", run);
  std::unique_ptr<Trainer> trainer;
  try {
    trainer = set_up(settings, {settings.paths, run, replaces, options.on_event}, goes_on, state);
  } catch (...) {
    if (!goes_on) undo_start(run, replaces, was_there, state);
    throw;
  }
  try {
    trainer->begin();
    if (goes_on) save_settings(run, settings);  // not before its data are known to be the same
    return trainer->run();
  } catch (...) {
    if (replaces && !state.holds_state()) {
      undo_start(run, replaces, was_there, state);
    } else if (options.on_event) {
      options.on_event(RunEvent::end);  // what is shown of it goes on no longer
    }
    if (keeps_replaced(run)) {
      log_warning("{}/replaced keeps the earlier run until this one's first validation", run);
    }
    throw;
  }
}

}  // namespace heddle::train
