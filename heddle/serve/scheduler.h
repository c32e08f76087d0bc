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
  Request request;                  ///< on_start and on_done are the scheduler's
  Moment deadline = Moment::max();  ///< until which it may wait
  /// Makes what the request lacks (Request::memory_rows) once the job waits no longer, on its
  /// engine's thread. false: that cannot be, and the job is dropped, as by cancel().
  std::function<bool(Request&)> prepare = {};
  std::function<void()> on_start = {};  ///< it waits no longer
  /// Called once, unless the job was cancelled; hypotheses of one that is done. It may submit and
  /// cancel jobs.
  std::function<void(JobEnd, std::span<const Hypothesis>)> on_end = {};
};

/// How many engines a scheduler has, and from how many hypotheses for each on it uses all of them
/// instead of one (least_rows_of_engine()); 0: always.
struct Engines {
  int count = 1;
  int64_t least_width = 0;
};

/// Jobs share the passes of an engine, or of several: those that come wait in one queue, from which
/// each engine takes the first that there is room for, up to its share of all; those that are done
/// leave, and their rows are free at once. What a job gets depends neither on when it came, nor on
/// its engine, nor on its neighbours, bit for bit.
///
/// Where there is no room for a job, smaller ones pass it, but by no more rows in all than it takes
/// itself, so that it waits as if so much more had come before it; kMostPassed are passed at once.
///
/// An engine with others running takes more together: an encoder pass over few sentences costs more
/// than the rows that stay empty meanwhile. It takes them once they are a quarter of those that it
/// runs, or kWorthTokens, or it has been short of them for kMostHeld steps; a prompt, which takes
/// no pass of its own, joins at the next step. Of jobs that are prepared, each by a pass of its
/// own, one joins at each step: those that run wait for no more.
///
/// It knows no time but what step() is told, and no thread but those that call it: all may, but one
/// thread steps an engine. An engine that alone has something to do computes on all cores, else
/// each on its own. Callbacks of a job are called by the step of its engine.
class Scheduler {
 public:
  /// Hypotheses that all engines in use run: each takes logits, a number for every token of the
  /// vocabulary. One job may have more, and many engines have kLeastWidth each.
  static constexpr int64_t kMostWidth = 512, kLeastWidth = 64;
  static constexpr int64_t kWorthTokens = 256;
  static constexpr int kMostHeld = 4;
  static constexpr int kMostPassed = 8;
  /// Rows of prompts that a step reads: of GPT-2 (124M) as long as some ten steps of one sequence.
  static constexpr int64_t kMostPromptRows = 256;
  /// Rows of sources in a step beside those that run, or one more job's. More join at the next.
  static constexpr int64_t kMostSourceRows = 1024;

  /// rows: of the KV cache, each keys and values of one token in all layers
  Scheduler(const Model& model, Precision precision, int64_t rows, Engines engines = {});

  /// Rows that a request may hold, which is what it weighs. Errors: none.
  int64_t rows_needed(const Request& request) const {
    return lanes_[0]->engine.rows_needed(request);
  }
  /// returns: its id. Errors: those of Engine::check_request(); the job is not taken then.
  int64_t submit(Job job);
  /// Drops a job, which hears nothing from then on but what its engine says at this moment; its
  /// rows are free before the engine's next step. An id that has ended is passed over.
  void cancel(int64_t id);
  /// Lets a job wait beyond its deadline.
  void keep_waiting(int64_t id);
  /// Drops all jobs, and what they hold. While nothing steps.
  void clear();
  /// Ends those that have waited too long, then one pass of all that this engine runs.
  /// returns: whether there is more for it to do
  bool step(Moment now, size_t engine = 0);

  size_t engines() const { return lanes_.size(); }
  /// Whether this engine runs a job, or is one of those without any that may take one.
  bool has_work(size_t engine) const;
  int64_t waiting() const;
  int64_t running() const;
  bool is_idle() const;
  /// Rows of the KV cache that are held, by the last steps.
  int64_t rows() const;

 private:
  struct Waiting {
    Job job;
    int64_t rows, width;
    int64_t passed = 0;  // rows of those that came later and run
  };
  // An engine, and what is in it.
  struct Lane {
    Lane(const Model& model, Precision precision) : engine(model, precision) {}
    Engine engine;                            // of the thread that steps it, as the next
    std::map<int64_t, int64_t> numbers = {};  // our id: the engine's
    // With the lock.
    int64_t width = 0, cache_rows = 0;
    std::vector<int64_t> cancelled = {};
    int held = 0;  // steps for which those that wait were held back
  };
  struct Running {
    size_t lane = 0;
    int64_t rows = 0, width = 0;
    std::function<void(JobEnd, std::span<const Hypothesis>)> on_end = {};
  };
  using WaitingJobs = std::map<int64_t, Waiting>;  // by id, which rises: the first came first

  void end_late(Moment now);
  int64_t running_engines() const;
  int64_t engines_in_use() const;
  std::vector<WaitingJobs::const_iterator> those_with_room(const Lane& lane, size_t most) const;
  bool is_worth(const Lane& lane, std::span<const WaitingJobs::const_iterator> joining) const;
  WaitingJobs take(size_t lane);
  void start(Lane& lane, int64_t id, Job job);
  Running leave(std::map<int64_t, Running>::iterator at);
  void end(Lane& lane, int64_t id, JobEnd outcome, std::span<const Hypothesis> found);

  const int64_t most_rows_, least_width_;  // of all; of each engine, if several are used
  std::vector<std::unique_ptr<Lane>> lanes_;
  mutable std::mutex mutex_;  // of all below, never held while a job is called
  WaitingJobs waiting_;
  std::map<int64_t, Running> running_;
  int64_t next_ = 0;                       // id of the next
  int64_t rows_ = 0, width_ = 0;           // that all that run may hold
  int64_t waiting_width_ = 0;              // that those that wait may come to
  Moment first_deadline_ = Moment::max();  // of those that wait, or a moment before it
};

}  // namespace heddle::serve
