// Jobs of one model that come at any time: which wait, which run, and what became of each.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

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

/// Jobs share the passes of an engine, or of several, each a thread's (engines_of()): those that
/// come join in their order, once there is room for all that they may need; those that are done
/// leave, and their rows are free at once. What a job gets depends neither on when it came nor on
/// its neighbours, bit for bit.
///
/// Where others run, those that wait join together: an encoder pass over few sentences costs more
/// than the rows that stay empty meanwhile. They join once they are a quarter of those that run, or
/// kWorthTokens for each engine, or have waited for kMostHeld steps; a prompt, which takes no pass
/// of its own, joins at the next step.
///
/// It knows no time but what step() is told, and no thread but those of step(): one uses it. No two
/// callbacks of jobs run at a time.
class Scheduler {
 public:
  /// Hypotheses of all that run: each takes logits, a number for every token of the vocabulary. One
  /// job may have more.
  static constexpr int64_t kMostWidth = 512;
  static constexpr int64_t kWorthTokens = 256;
  static constexpr int kMostHeld = 4;
  /// Rows of prompts that a step reads: of GPT-2 (124M) as long as some ten steps of one sequence.
  static constexpr int64_t kMostPromptRows = 256;

  /// rows: of the KV cache, each keys and values of one token in all layers
  Scheduler(const Model& model, Precision precision, int64_t rows, int engines = 1);

  /// Rows that a request may hold, which is what it weighs. Errors: none.
  int64_t rows_needed(const Request& request) const {
    return lanes_[0]->engine.rows_needed(request);
  }
  /// returns: its id. Errors: those of Engine::check_request(); the job is not taken then.
  int64_t submit(Job job);
  /// Drops a job, whose rows are free before the next step. An id that has ended is passed over.
  void cancel(int64_t id);
  /// Drops all jobs, and what they hold.
  void clear();
  /// Ends those that have waited too long, then one pass of all that run.
  /// returns: whether there is more to do
  bool step(Moment now);

  int64_t waiting() const { return std::ssize(waiting_); }
  int64_t running() const { return std::ssize(running_); }
  bool is_idle() const { return waiting_.empty() && running_.empty(); }
  /// Rows of the KV cache that are held.
  int64_t rows() const;

 private:
  struct Lane {
    Lane(const Model& model, Precision precision) : engine(model, precision) {}
    Engine engine;
    std::map<int64_t, int64_t> jobs = {};  // the engine's id: ours
    int64_t width = 0;
  };
  struct Running {
    size_t lane;
    int64_t number;  // the engine's id
    int64_t rows, width;
    std::function<void(JobEnd, std::span<const Hypothesis>)> on_end;
  };

  void end_late(Moment now);
  size_t count_of_those_that_join();
  void start(int64_t id, Job job);
  void step_lane(Lane& lane);
  Running leave(std::map<int64_t, Running>::iterator at);
  void end(int64_t id, JobEnd outcome, std::span<const Hypothesis> found);

  const int64_t most_rows_;
  std::vector<std::unique_ptr<Lane>> lanes_;
  std::map<int64_t, Job> waiting_;  // by id, which rises: those that came first are first
  std::map<int64_t, Running> running_;
  int64_t next_ = 0;              // id of the next
  int64_t rows_ = 0, width_ = 0;  // that all that run may hold
  int held_ = 0;                  // steps for which those that wait were held back
  std::mutex callbacks_;          // held by each, while engines step
  bool is_in_step_ = false;
  std::vector<std::pair<size_t, int64_t>> cancelled_;  // in a step: lane and engine's id
};

}  // namespace heddle::serve
