// A list of tasks under a lock, and the schedulers' steps.
#include "heddle/serve/engine_thread.h"

#include <algorithm>

#include "heddle/base/log.h"

namespace heddle::serve {

EngineThread::EngineThread(Schedulers schedulers)
    : schedulers_(std::move(schedulers)), thread_([this] { run(); }) {}

EngineThread::~EngineThread() {
  {
    const std::lock_guard lock(mutex_);
    is_ending_ = true;
  }
  wakes_.notify_one();
  thread_.join();
  for (const Schedulers* some : {&leaving_, &schedulers_}) {
    for (const auto& scheduler : *some) scheduler->clear();
  }
}

void EngineThread::post(std::function<void()> task) {
  {
    const std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
  }
  wakes_.notify_one();
}

void EngineThread::replace(Schedulers schedulers) {
  post([this, schedulers = std::move(schedulers)]() mutable {
    leaving_.insert(leaving_.end(), schedulers_.begin(), schedulers_.end());
    schedulers_ = std::move(schedulers);
  });
}

void EngineThread::run() {
  const auto is_idle = [](const auto& scheduler) { return scheduler->is_idle(); };
  for (;;) {
    std::erase_if(leaving_, is_idle);
    std::vector<std::function<void()>> tasks;
    {
      std::unique_lock lock(mutex_);
      const bool has_nothing = leaving_.empty() && std::ranges::all_of(schedulers_, is_idle);
      if (has_nothing) wakes_.wait(lock, [&] { return is_ending_ || !tasks_.empty(); });
      if (is_ending_) return;
      tasks.swap(tasks_);
    }
    for (const auto& task : tasks) {
      try {
        task();
      } catch (const std::exception& error) {
        log_error("serve: {}", error.what());
      }
    }
    for (const Schedulers* some : {&leaving_, &schedulers_}) {
      for (const auto& scheduler : *some) {
        if (!scheduler->is_idle()) scheduler->step(Clock::now());
      }
    }
  }
}

}  // namespace heddle::serve
