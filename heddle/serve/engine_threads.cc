// Threads that sleep until a scheduler has work for their engines.
#include "heddle/serve/engine_threads.h"

#include <algorithm>

#include "heddle/base/log.h"

namespace heddle::serve {

EngineThreads::EngineThreads(Schedulers schedulers) : schedulers_(std::move(schedulers)) { hire(); }

EngineThreads::~EngineThreads() {
  {
    const std::lock_guard lock(mutex_);
    is_ending_ = true;
    for (Worker& worker : workers_) worker.wakes.notify_one();
  }
  for (Worker& worker : workers_) worker.thread.join();
  for (const auto& scheduler : all()) scheduler->clear();
}

// As many as the scheduler with the most engines has; one in any case.
void EngineThreads::hire() {
  const std::lock_guard lock(mutex_);
  size_t most = 1;
  for (const auto& scheduler : schedulers_) most = std::max(most, scheduler->engines());
  while (workers_.size() < most) {
    const size_t index = workers_.size();
    workers_.emplace_back().thread = std::thread([this, index] { run(index); });
  }
}

void EngineThreads::wake() {
  const std::lock_guard lock(mutex_);
  wake_others();
}

void EngineThreads::post(std::function<void()> task) {
  const std::lock_guard lock(mutex_);
  tasks_.push_back(std::move(task));
  workers_[0].wakes.notify_one();
}

void EngineThreads::replace(Schedulers schedulers) {
  {
    const std::lock_guard lock(mutex_);
    leaving_.insert(leaving_.end(), schedulers_.begin(), schedulers_.end());
    schedulers_ = std::move(schedulers);
    wake_others();
  }
  hire();
}

// Those that leave first: their models' memory is free once they are done.
EngineThreads::Schedulers EngineThreads::all() const {
  Schedulers all;
  for (const auto& one : leaving_) {
    if (auto scheduler = one.lock()) all.push_back(std::move(scheduler));
  }
  all.insert(all.end(), schedulers_.begin(), schedulers_.end());
  return all;
}

bool EngineThreads::has_work(size_t index) const {
  const auto waits = [&](const auto& s) { return index < s->engines() && s->has_work(index); };
  const auto held_waits = [&](const auto& one) {
    const auto scheduler = one.lock();
    return scheduler && waits(scheduler);
  };
  return std::ranges::any_of(leaving_, held_waits) || std::ranges::any_of(schedulers_, waits);
}

void EngineThreads::wake_others() {
  std::erase_if(leaving_, [](const auto& one) { return one.expired(); });
  for (size_t i = 0; i < workers_.size(); ++i) {
    if (workers_[i].is_asleep && has_work(i)) workers_[i].wakes.notify_one();
  }
}

void EngineThreads::run(size_t index) {
  for (;;) {
    std::vector<std::function<void()>> tasks;
    Schedulers schedulers;
    {
      std::unique_lock lock(mutex_);
      wake_others();  // a step may have made room
      Worker& worker = workers_[index];
      worker.is_asleep = true;
      worker.wakes.wait(
          lock, [&] { return is_ending_ || (index == 0 && !tasks_.empty()) || has_work(index); });
      worker.is_asleep = false;
      if (is_ending_) return;
      if (index == 0) tasks.swap(tasks_);
      schedulers = all();
    }
    std::erase_if(schedulers, [&](const auto& s) { return index >= s->engines(); });
    for (const auto& task : tasks) {
      try {
        task();
      } catch (const std::exception& error) {
        log_error("serve: {}", error.what());
      }
    }
    for (const auto& scheduler : schedulers) {
      if (scheduler->has_work(index)) scheduler->step(Clock::now(), index);
    }
  }
}

}  // namespace heddle::serve
