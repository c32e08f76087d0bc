// A list of tasks under a lock, and the schedulers' steps.
#include "heddle/serve/engine_thread.h"

#include <algorithm>

namespace heddle::serve {

EngineThread::EngineThread(std::vector<Scheduler*> schedulers)
    : schedulers_(std::move(schedulers)), thread_([this] { run(); }) {}

EngineThread::~EngineThread() {
  {
    const std::lock_guard lock(mutex_);
    is_ending_ = true;
  }
  wakes_.notify_one();
  thread_.join();
}

void EngineThread::post(std::function<void()> task) {
  {
    const std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
  }
  wakes_.notify_one();
}

void EngineThread::run() {
  for (;;) {
    std::vector<std::function<void()>> tasks;
    {
      std::unique_lock lock(mutex_);
      const bool is_idle = std::ranges::all_of(schedulers_, &Scheduler::is_idle);
      if (is_idle) wakes_.wait(lock, [&] { return is_ending_ || !tasks_.empty(); });
      if (is_ending_) return;
      tasks.swap(tasks_);
    }
    for (const auto& task : tasks) task();
    for (Scheduler* scheduler : schedulers_) {
      if (!scheduler->is_idle()) scheduler->step(Clock::now());
    }
  }
}

}  // namespace heddle::serve
