// The beginning and the end of a run, on rank 0 and on others.
#include "heddle/train/trainer.h"

#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "heddle/base/files/files.h"
#include "heddle/base/log.h"
#include "heddle/base/names.h"
#include "heddle/base/profile.h"
#include "heddle/dist/share_out.h"
#include "heddle/infer/loading/loaded_model.h"
#include "heddle/train/run/state.h"
#include "heddle/train/tasks/task.h"
#include "heddle/train/training_loop.h"

namespace heddle::train {
namespace {

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
std::unique_ptr<TrainingLoop> set_up(const RunSettings& settings, const RunOptions& options,
                                     bool goes_on, StateFolder& state) {
  const ProfilePhase phase("set up");
  const std::string& run = options.out;
  if (options.overwrite) {
    set_aside(run, state);
  } else if (!goes_on) {
    clear_run(run, state);
  } else if (!state.holds_state()) {
    clear_tokenizers(run);  // of data that may be others now
  }
  remove_temporaries(run);
  if (!goes_on) save_settings(run, settings);
  return std::make_unique<TrainingLoop>(settings.config, options, &state);
}

// What rank 0 tells the others when it knows how the run begins.
struct Beginning {
  bool was_finished = false;
  int64_t updates = 0;  // of a finished run
  double seconds = 0;
  RunPaths paths = {};

  template <class V>
  void fields(V& v) {
    v("was_finished", was_finished, "");
    v("updates", updates, "");
    v("seconds", seconds, "");
    paths.fields(v);
  }
};

RunResult tell_finished(dist::Group& group, const RunResult& result) {
  static_cast<void>(group.broadcast(
      to_json(Beginning{.was_finished = true, .updates = result.updates, .seconds = result.seconds})
          .dump()));
  return result;
}

// A run that goes on has its weights, whatever it is told to begin from. A base that is no more
// where it was may be the one that is named now.
void check_same_base(const std::string& stored, const std::string& asked, const std::string& run) {
  std::error_code ignored;
  if (asked.empty() || std::filesystem::equivalent(stored, asked, ignored)) return;
  check(!stored.empty() && !path_exists(stored), ErrorKind::usage,
        "{} was begun from {}, not {}; leave `from` out to go on, or start anew with `overwrite`",
        run, stored.empty() ? "nothing" : stored, asked);
}

// Rank 0: it alone makes, clears and writes RUN.
RunResult lead(const TrainConfig& config, const RunOptions& options) {
  const std::string& run = options.out;
  check(!run.empty(), ErrorKind::usage, "train: `out` is empty; name a folder for the run");
  settle_replaced(run);
  const bool replaces = is_run(run) && options.overwrite, goes_on = is_run(run) && !replaces;
  RunSettings settings{config, options.paths};
  if (goes_on) {
    RunSettings stored = load_settings(run);
    check_same_config(stored.config, config, run);
    check_has_state(run, config);
    if (const auto result = finished_result(config, run)) {
      return tell_finished(*options.group, *result);
    }
    check_same_base(stored.paths.from, settings.paths.from, run);
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
  std::unique_ptr<TrainingLoop> loop;
  try {
    RunOptions own = options;
    own.paths = settings.paths, own.overwrite = replaces;
    loop = set_up(settings, own, goes_on, state);
  } catch (...) {
    if (!goes_on) undo_start(run, replaces, was_there, state);
    throw;
  }
  try {
    static_cast<void>(options.group->broadcast(to_json(Beginning{.paths = settings.paths}).dump()));
    loop->begin();
    if (goes_on) save_settings(run, settings);  // not before its data are known to be the same
    return loop->run();
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

// A file system of a network may say for so long that something is not there yet.
constexpr std::chrono::seconds kUnseen(60);

// Opening a folder makes such a file system ask its server again what is there.
bool sees_run(const std::string& run) {
  const std::string parent = (std::filesystem::absolute(run) / "").parent_path().parent_path();
  for (const std::string& path : {parent, run, join_path(run, "state")}) {
    if (is_directory(path)) static_cast<void>(list_directory(path));
  }
  return is_run(run);
}

// Returns when this rank sees the run that rank 0 has begun.
void wait_for_run(dist::Group& group, const std::string& run) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point until = Clock::now() + kUnseen;
  bool is_seen = false;
  while (!(is_seen = sees_run(run)) && Clock::now() < until) {
    group.check_alive();
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  check(is_seen, ErrorKind::usage,
        "{}: rank {} does not see the run that rank 0 has begun there; ranks need a folder that "
        "all of them see",
        run, group.rank());
}

// Other ranks: what rank 0 has made is there when they begin.
RunResult follow(const TrainConfig& config, const RunOptions& options) {
  const std::string source = "what rank 0 began";
  Beginning beginning;
  static_cast<void>(
      from_json(beginning, Json::parse(options.group->broadcast(""), source), source));
  if (beginning.was_finished) {
    RunResult result;
    result.updates = beginning.updates, result.seconds = beginning.seconds;
    result.was_finished = true;
    return result;
  }
  wait_for_run(*options.group, options.out);
  RunOptions own = options;
  own.paths = beginning.paths;
  TrainingLoop loop(config, own, nullptr);
  loop.begin();
  return loop.run();
}

void check_can_share(const dist::Group& group, const TrainConfig& config) {
  const int64_t ranks = group.ranks();
  check(config.shards % ranks == 0, ErrorKind::usage,
        "train: {} ranks share the shards of a batch, and there are {}; give `shards` {} (the bits "
        "of a run depend on shards, and not on ranks)",
        ranks, config.shards, ranks);
}

// What any rank finds by itself all end by, with its exit code.
void check_alone(dist::Group& group, const TrainConfig& config) {
  dist::do_alike(group, [&] {
    config.check("train");
    check_can_share(group, config);
  });
}

void warn_of_warmup(const TrainConfig& config) {
  if (config.max_updates == 0 || config.warmup_updates < config.max_updates) return;
  log_warning(
      "the learning rate rises until update {}, and the run ends at {}: it stays below {}; give "
      "fewer `warmup_updates`",
      config.warmup_updates, config.max_updates, config.learning_rate);
}

// What would give other bits, or another run, on one of the ranks.
void check_same_ranks(dist::Group& group, const TrainConfig& config, const RunOptions& options) {
  if (group.is_alone()) return;
  dist::Facts facts = {{"heddle", version()}, {"--wire", dtype_name(group.wire())}};
  if (!options.any_cpu) {
    facts["the machine"] = machine_signature(resolve_precision(config.precision).compute);
  }
  for (const Json& fields : {to_json(config), to_json(made_absolute(options.paths))}) {
    for (const auto& [key, value] : fields.as_object()) facts["`" + key + "`"] = value.dump();
  }
  dist::check_equal(group, facts);
}

}  // namespace

RunResult train_model(const TrainConfig& config, const RunOptions& options) {
  dist::LocalGroup alone;
  RunOptions own = options;
  if (own.group == nullptr) own.group = &alone;
  dist::Group& group = *own.group;
  try {
    check_alone(group, config);
    check_same_ranks(group, config, own);
    if (group.wire() != DType::f32 && group.rank() == 0) {
      log_warning(
          "gradients go between the {} ranks as {}: another number of them gives other bits",
          group.ranks(), dtype_name(group.wire()));
    }
    if (group.rank() != 0) return follow(config, own);
    warn_of_warmup(config);
    return lead(config, own);
  } catch (const std::exception& e) {
    group.leave_with(e.what());
    throw;
  }
}

}  // namespace heddle::train
