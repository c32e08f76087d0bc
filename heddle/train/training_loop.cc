// Updating, looking at what is not finite, logging, saving.
#include "heddle/train/training_loop.h"

#include <algorithm>
#include <cmath>
#include <csignal>
#include <utility>

#include "heddle/base/files/files.h"
#include "heddle/base/log.h"
#include "heddle/base/names.h"
#include "heddle/base/profile.h"
#include "heddle/base/progress.h"
#include "heddle/base/rounded.h"
#include "heddle/base/signals.h"
#include "heddle/data/image_cache.h"
#include "heddle/dist/share_out.h"
#include "heddle/infer/loading/loaded_model.h"
#include "heddle/train/not_finite.h"
#include "heddle/train/ranks/rank_messages.h"
#include "heddle/train/tasks/task.h"

namespace heddle::train {
namespace {

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// How much of its limits a run has used up; 1: it is at its end.
double limit_share(const TrainConfig& c, int64_t update, double seconds) {
  double done = 0;
  if (c.max_updates > 0) done = static_cast<double>(update) / static_cast<double>(c.max_updates);
  if (c.max_minutes > 0) done = std::max(done, seconds / (60 * c.max_minutes));
  return std::min(1.0, done);
}

const char* counted_by(const TrainConfig& c) { return c.task_config->facts().counted; }

double per_second(const LogWindow& w) {
  return static_cast<double>(w.tokens) / std::max(w.seconds, 1e-9);
}

// Their paths; none if there is no such folder.
std::set<std::string> files_in(const std::string& folder) {
  std::set<std::string> paths;
  if (!is_directory(folder)) return paths;
  for (const std::string& name : list_directory(folder)) paths.insert(join_path(folder, name));
  return paths;
}

}  // namespace

bool is_at_end(const TrainConfig& c, const Progression& p, double seconds) {
  return limit_share(c, p.update, seconds) >= 1 ||
         (c.early_stop != "none" && p.without_better >= c.patience);
}

RunResult make_result(const Progression& p, double seconds) {
  return {.updates = p.update, .seconds = seconds, .best_kind = p.best_kind, .best = p.best};
}

TrainingLoop::TrainingLoop(const TrainConfig& config, const RunOptions& options, StateFolder* state)
    : config_(config),
      out_(options.out),
      replaces_(state != nullptr && keeps_replaced(options.out)),
      on_event_(state != nullptr ? options.on_event : nullptr),
      state_(state),
      group_(*options.group),
      caches_before_(state != nullptr ? files_in(join_path(options.out, "cache"))
                                      : std::set<std::string>()),
      task_(config.task_config->make(config, options.paths, options.out)),
      parameters_(task_->parameters()),
      gradient_(*task_, config.shards, config.accumulate, group_, GradientLayout::kBucketValues,
                config.optimizer == "muon"),
      optimizer_(parameters_, config.optimizer_options(), gradient_.ranges()) {
  for (size_t i = 0; i < parameters_.all().size(); ++i) {
    optimizer_.set_rate_factor(i, task_->rate_factor(*parameters_.all()[i]));
  }
  run_.use(resolve_precision(config.precision));
  run_.dropout.seed = static_cast<uint64_t>(config.seed);
  run_.recompute = config.recompute;
  validation_.emplace(
      config_, out_, *task_, state_, group_, [this] { return seconds(); },
      [this] { return last_good(); });
}

void TrainingLoop::begin() {
  dist::check_equal(group_, {{"the training data", task_->training_key()},
                             {"the validation data", task_->validation_key()}});
  NamedTensors carried;
  const std::optional<Progression> saved = load(carried);
  check_same_state(group_, state_path(), saved, parameters_);
  if (saved) {
    p_ = *saved;
    if (std::isnan(p_.best_cost)) p_.best_cost = p_.best.cost(config_.select);  // not named there
    if (leads()) warn_of_differences();
    run_.dropout.update = static_cast<uint64_t>(p_.update);
    task_->parameters_changed();
    task_->carry_on(carried, p_.epoch, p_.batch);
    log_info("resuming {} at update {}", out_, p_.update);
  }
  p_.finished = false;
  p_.corpus = task_->training_key();
  p_.validation = task_->validation_key();
  p_.machine = machine_signature(run_.compute);
  p_.version = version();
  if (leads()) p_.seconds = std::max(p_.seconds, noted_seconds_);
  seconds_before_ = p_.seconds;
  begin_ = Clock::now();
  agreed_ = gradient_.agree({.seconds = seconds()});
  if (!leads()) return;
  for (const std::string& path : task_->caches()) remove_other_caches(path);
  note_seconds();
  log_.emplace(join_path(out_, "log.jsonl"), p_.log_bytes);
}

RunResult TrainingLoop::run() {
  install_signal_handlers();
  std::optional<Progress> progress;
  if (leads()) progress.emplace("train", share());
  while (true) {
    // Here and not behind the update, so that a run that was stopped there validates first.
    if (is_validation_due()) {
      validate();
      save();
      tell(RunEvent::validation);
    }
    if (signal() != 0) return interrupted();
    if (is_over()) break;
    update();
    if (progress && progress->is_due()) progress->update(share(), status());
    if (p_.update % config_.log_every == 0 || is_over()) {
      log_window();
      tell(RunEvent::log);
    }
    if (signal() == 0 && p_.update % config_.checkpoint_every == 0 && !is_validation_due()) {
      save();
    }
    note_seconds();
  }
  if (p_.window.updates > 0) log_window();  // the minutes ran out just now
  if (p_.validated_update != p_.update || p_.best_kind.empty()) validate();
  group_.barrier();  // rank 0 has written it
  task_->finish(join_path(out_, "best"), group_);
  p_.finished = true;
  report_ranks();
  save(true);
  tell(RunEvent::end);
  return make_result(p_, p_.seconds);
}

std::optional<Progression> TrainingLoop::load(NamedTensors& carried) {
  const auto accept = [this](const Progression& saved) {
    check_same_data(saved.corpus, task_->training_key(), "training");
    check_same_data(saved.validation, task_->validation_key(), "validation");
  };
  if (!leads()) {
    return StateFolder::read(state_path(), parameters_, optimizer_, &carried, accept);
  }
  noted_seconds_ = state_->noted_seconds();
  try {
    return state_->load(parameters_, optimizer_, &carried, accept);
  } catch (const Error&) {
    remove_new_caches();
    throw;
  }
}

// Of data that the run does not go on with.
void TrainingLoop::remove_new_caches() const {
  for (const std::string& path : task_->caches()) {
    if (!caches_before_.contains(path)) remove_path(path);
  }
}

// Equal bits are promised for one program on one kind of machine.
void TrainingLoop::warn_of_differences() const {
  if (p_.machine != machine_signature(run_.compute)) {
    log_warning("this run was saved on '{}', this is '{}': the result will differ in its last bits",
                p_.machine, machine_signature(run_.compute));
  }
  if (p_.version != version()) {
    log_warning(
        "this run was saved by {}, this is heddle {}: the result may differ from that of one "
        "version alone",
        p_.version.empty() ? "an older heddle" : "heddle " + p_.version, version());
  }
}

void TrainingLoop::check_same_data(const std::string& saved, const std::string& key,
                                   const char* what) const {
  check(saved.empty() || saved == key, ErrorKind::data,
        "{}: the {} data{}{} are not what this run began with; restore them, or start anew with "
        "`overwrite`",
        out_, what, key.find(" on ") == key.npos ? "" : ", or the model begun from,",
        key.find(" taught ") == key.npos ? "" : ", or the teacher,");
}

void TrainingLoop::tell(RunEvent event) const {
  if (on_event_) on_event_(event);
}

RunResult TrainingLoop::interrupted() {
  report_ranks();
  save(true);
  tell(RunEvent::end);
  // All ranks end alike, whichever was told to.
  if (pending_signal() == 0) std::raise(static_cast<int>(signal()));
  RunResult result = make_result(p_, p_.seconds);
  result.was_interrupted = true;
  return result;
}

// That of the last update, from 1.
int64_t TrainingLoop::epoch() const { return std::max<int64_t>(1, p_.epoch + (p_.batch > 0)); }
double TrainingLoop::seconds() const { return seconds_before_ + seconds_since(begin_); }
double TrainingLoop::share() const { return limit_share(config_, p_.update, seconds()); }
// Ranks end at the same update: by what all knew when they had computed the last one.
int64_t TrainingLoop::signal() const {
  return group_.is_alone() ? pending_signal() : agreed_.signal;
}
bool TrainingLoop::is_over() const {
  return is_at_end(config_, p_, group_.is_alone() ? seconds() : agreed_.seconds);
}

// Once a second, for a kill before the next save.
void TrainingLoop::note_seconds() {
  if (!leads() || seconds() < next_note_) return;
  next_note_ = seconds() + 1;
  state_->note_seconds(seconds());
}

bool TrainingLoop::is_validation_due() const {
  return p_.update > 0 && p_.update % config_.validate_every == 0 &&
         p_.validated_update != p_.update;
}

// One update: the next batch, its gradient, a step.
void TrainingLoop::update() {
  const ProfilePhase phase("update");
  const Clock::time_point begin = Clock::now();
  const int64_t batches = task_->batches(p_.epoch);
  run_.dropout.training = true;
  run_.dropout.update = static_cast<uint64_t>(p_.update + 1);
  group_.note_update(p_.update + 1);
  const Parts parts = task_->parts(p_.epoch, p_.batch, gradient_.parts());
  cost_.begin();
  const LossSums own = gradient_.compute(p_.epoch, parts, run_);
  cost_.end(parameters_, optimizer_, own.tokens * group_.ranks(), gradient_.bytes());
  agreed_ = gradient_.agree({own, pending_signal(), seconds()});
  const LossSums& sums = agreed_.sums;
  // A batch may have no token to predict: all of its tokens are special.
  const auto tokens = static_cast<double>(std::max<int64_t>(1, sums.predicted));
  const double norm = gradient_.norm(optimizer_) / tokens;
  if (!std::isfinite(sums.loss) || !std::isfinite(norm)) report_bad_tensor(parts);
  double factor = 1 / tokens;
  if (config_.clip_norm > 0 && norm > config_.clip_norm) factor *= config_.clip_norm / norm;
  gradient_.step(optimizer_, learning_rate(config_.schedule_options(), p_.update + 1), factor);
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

std::string TrainingLoop::state_path() const { return join_path(out_, "state"); }

std::string TrainingLoop::last_good() const {
  if (!path_exists(join_path(state_path(), kManifestName))) return "no state was saved yet";
  return fmt::format("the last good state is in {}", state_path());
}

// Fails with what one of the ranks has found. The weights are still those before the update.
void TrainingLoop::report_bad_tensor(const Parts& parts) {
  dist::do_alike(group_, [&] { name_what_is_bad(parts); });
  dist::fail_together(
      group_, ErrorKind::data,
      fmt::format("update {}: the gradient is not finite. {}", p_.update + 1, last_good()));
}

void TrainingLoop::name_what_is_bad(const Parts& parts) {
  const std::string bad_gradient = gradient_.first_bad(optimizer_);
  for (const auto& p : parameters_.all()) p->grad() = Tensor();
  check_weights(parameters_, p_.update, last_good());
  name_bad_tensor("loss", p_.update + 1, last_good(), [&] {
    for (const auto& samples : gradient_.own(parts)) {
      task_->accumulate(p_.epoch, samples, run_);
    }
  });
  check(bad_gradient.empty(), ErrorKind::data,
        "update {}: the gradient of '{}' is not finite; lower the learning rate, clip gradients, "
        "or compute in f32. {}",
        p_.update + 1, bad_gradient, last_good());
}

// Short enough to leave room for a bar in 80 columns; a rank is named where it costs the others.
std::string TrainingLoop::status() {
  const LogWindow& w = p_.window;
  const double tokens = static_cast<double>(std::max<int64_t>(1, w.predicted));
  std::string text = fmt::format("epoch {}  loss {:.3f}  {}", epoch(), w.loss / tokens,
                                 cost_.speed(per_second(w), counted_by(config_), run_.compute));
  constexpr double kNoticed = 0.05;
  if (const auto slow = gradient_.slowest(); slow && slow->over_mean >= kNoticed) {
    text += fmt::format("  rank {} +{:.0f} %", slow->rank, 100 * slow->over_mean);
  }
  return text;
}

void TrainingLoop::log_window() {
  const LogWindow w = std::exchange(p_.window, LogWindow());
  if (!leads()) return;
  const double tokens = static_cast<double>(std::max<int64_t>(1, w.predicted));
  log_->write(
      Json::object({{"update", p_.update},
                    {"epoch", epoch()},
                    {"loss", w.loss / tokens},
                    {"nll", w.nll / tokens},
                    {"gradient_norm", w.gradient_norm / static_cast<double>(w.updates)},
                    {"learning_rate", learning_rate(config_.schedule_options(), p_.update)},
                    {fmt::format("{}_per_second", counted_by(config_)), std::round(per_second(w))},
                    {"share_of_peak", cost_.share_of_peak(per_second(w), run_.compute)},
                    {"seconds", rounded(seconds(), 1)}}));
}

void TrainingLoop::validate() {
  check_same_weights(group_, parameters_, p_.update);  // before models are written of them
  std::vector<Tensor> ema = gradient_.whole_averages(optimizer_);
  validation_->validate(p_, log_ ? &*log_ : nullptr, run_, std::move(ema));
}

void TrainingLoop::save(bool is_last) {
  const ProfilePhase phase("checkpoint");
  check_weights(parameters_, p_.update, last_good());  // what is saved is what is gone back to
  check_same_weights(group_, parameters_, p_.update);
  p_.seconds = seconds();
  const std::vector<Moments> moments = gradient_.whole_moments(optimizer_);
  const NamedTensors carried = gathered(group_, task_->carried());
  const auto write = [&] {
    if (!leads()) return;
    log_->sync();
    p_.log_bytes = log_->bytes();
    state_->save(p_, parameters_, moments, carried);
    if (!p_.best_kind.empty() && std::exchange(replaces_, false)) drop_replaced(out_);
  };
  // No update follows in which the others would miss a rank 0 that could not write.
  if (is_last) return dist::do_alike(group_, write);
  write();
}

// A line for each rank, and one of all in the log.
void TrainingLoop::report_ranks() {
  if (group_.is_alone()) return;
  Json all = times_of_ranks(group_, gradient_.times());
  if (!leads()) return;
  for (size_t rank = 0; rank < all.size(); ++rank) {
    const Json& one = all.as_array()[rank];
    const auto of = [&](const char* key) { return format_duration(one.get_double(key)); };
    log_info("rank {} ({}): {} computing, {} waiting for others, {} on the wire", rank,
             one.get_string("host"), of("compute_seconds"), of("waiting_seconds"),
             of("wire_seconds"));
  }
  log_->write(Json::object({{"update", p_.update}, {"ranks", std::move(all)}}));
}

}  // namespace heddle::train
