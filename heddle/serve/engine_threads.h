// The threads that models compute on: one for each engine of a model.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "heddle/serve/scheduler.h"

namespace heddle::serve {

/// Thread i steps engine i of each scheduler that has as many, in turn, for as long as there is
/// work for it, and waits for no other thread. The first one also does what others ask of it,
/// between steps.
class EngineThreads {
 public:
  using Schedulers = std::vector<std::shared_ptr<Scheduler>>;
  /// Errors: system if the system gives no such threads.
  explicit EngineThreads(Schedulers schedulers);
  /// Ends after the steps at hand; what was not done is dropped.
  ~EngineThreads();

  /// From any thread: jobs came, or were cancelled.
  void wake();
  /// From any thread: the first one does this, and nothing else that was posted, before one of its
  /// next steps. What it throws is logged.
  void post(std::function<void()> task);
  /// These come in the place of those before, which are stepped for as long as anybody has them: a
  /// request that took its model before may still give it jobs, and jobs hold their scheduler. For
  /// one thread. Errors: those of the constructor; those before then stay.
  void replace(Schedulers schedulers);

 private:
  struct Worker {
    std::condition_variable wakes;
    bool is_asleep = false, is_called = false;
    std::thread thread;
    void call() { is_called = true, wakes.notify_one(); }
  };

  void hire(const Schedulers& schedulers);
  void end();
  void run(size_t index);
  Schedulers all() const;
  static bool has_work(const Schedulers& schedulers, size_t index);
  void wake_others(const Schedulers& schedulers);

  std::mutex mutex_;  // of all below
  Schedulers schedulers_;
  std::vector<std::weak_ptr<Scheduler>> leaving_;
  std::deque<std::function<void()>> tasks_;  // of the first thread
  bool is_ending_ = false;
  std::deque<Worker> workers_;
};

}  // namespace heddle::serve
