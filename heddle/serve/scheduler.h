// Jobs of one model that come at any time: which wait, which run, and what became of each.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <span>

#include "heddle/infer/engine/engine.h"

namespace heddle::serve {

using Clock = std::chrono::steady_clock;
using Moment = Clock::time_point;

enum class JobEnd : uint8_t {
  done,
  timed_out,  ///< its deadline came while it waited
  failed      ///< the model's weights are not finite
};

/// One sequence asked of a model.
struct Job {
  Request request;                      ///< on_start and on_done are the scheduler's
  Moment deadline = Moment::max();      ///< until which it may wait
  std::function<void()> on_start = {};  ///< it waits no longer
  /// Called once, unless the job was cancelled; hypotheses of one that is done. It may submit and
  /// cancel jobs.
  std::function<void(JobEnd, std::span<const Hypothesis>)> on_end = {};
};

/// All jobs share the passes of one engine: those that come join at its next step, in their order,
/// once the KV cache has room for all that they may need; those that are done leave, and their rows
/// are free at once. What a job gets depends neither on when it came nor on its neighbours, bit for
/// bit. It knows no time but what step() is told, and no thread: one uses it.
class Scheduler {
 public:
  /// Sequences of a pass: each takes logits, a number for every token of the vocabulary.
  static constexpr int64_t kMostWidth = 512;

  /// rows: of the KV cache, each keys and values of one token in all layers
  Scheduler(const Model& model, Precision precision, int64_t rows);

  /// Rows that a request may hold, which is what it weighs. Errors: none.
  int64_t rows_needed(const Request& request) const { return engine_.rows_needed(request); }
  /// returns: its id. Errors: those of Engine::submit(); the job is not taken then.
  int64_t submit(Job job);
  /// Drops a job, whose rows are free before the next step. An id that has ended is passed over.
  void cancel(int64_t id);
  /// Drops all jobs, and what they hold.
  void clear();
  /// Ends those that have waited too long, then one pass of all that run.
  /// returns: whether there is more to do
  bool step(Moment now);

  int64_t waiting() const { return engine_.waiting(); }
  int64_t running() const { return engine_.running(); }
  bool is_idle() const { return jobs_.empty(); }
  /// Rows of the KV cache that are held.
  int64_t rows() const { return engine_.rows(); }

 private:
  struct Known {
    Moment deadline;
    std::function<void()> on_start;
    std::function<void(JobEnd, std::span<const Hypothesis>)> on_end;
    bool is_running = false;
  };
  void end(int64_t id, JobEnd outcome, std::span<const Hypothesis> found);
  void end_late(Moment now);

  Engine engine_;
  std::map<int64_t, Known> jobs_;  // by id, which rises: those that came first are first
  int64_t next_ = 0;               // id of the next
};

}  // namespace heddle::serve
