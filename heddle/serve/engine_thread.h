// The one thread that models compute on.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "heddle/serve/scheduler.h"

namespace heddle::serve {

/// Steps schedulers in turn while they have jobs, and between steps does what other threads ask of
/// it. Schedulers and models are used on this thread alone.
class EngineThread {
 public:
  using Schedulers = std::vector<std::shared_ptr<Scheduler>>;
  explicit EngineThread(Schedulers schedulers);
  /// Ends after the step at hand; what was not done is dropped.
  ~EngineThread();

  /// From any thread: does this before the next step. What it throws is logged.
  void post(std::function<void()> task);
  /// From any thread: these come in the place of those before, which leave once their jobs are
  /// done.
  void replace(Schedulers schedulers);

 private:
  void run();

  Schedulers schedulers_, leaving_;  // of its own thread
  std::mutex mutex_;
  std::condition_variable wakes_;
  std::vector<std::function<void()>> tasks_;
  bool is_ending_ = false;
  std::thread thread_;
};

}  // namespace heddle::serve
