// Threads that sleep until a scheduler has work for their engines.
#include "heddle/serve/engine_threads.h"

#include <algorithm>
#include <system_error>

#include "heddle/base/error.h"
#include "heddle/base/log.h"

namespace heddle::serve {

EngineThreads::EngineThreads(Schedulers schedulers) : schedulers_(std::move(schedulers)) {
  try {
    hire(schedulers_);
  } catch (...) {
    end();
    throw;
  }
}

EngineThreads::~EngineThreads() {
  end();
  for (const auto& scheduler : all()) scheduler->clear();
}

void EngineThreads::end() {
  {
    const std::lock_guard lock(mutex_);
    is_ending_ = true;
    for (Worker& worker : workers_) worker.call();
  }
  for (Worker& worker : workers_) worker.thread.join();
}

// As many as the scheduler with the most engines has; one in any case.
void EngineThreads::hire(const Schedulers& schedulers) {
  const std::lock_guard lock(mutex_);
  size_t most = 1;
  for (const auto& scheduler : schedulers) most = std::max(most, scheduler->engines());
  while (workers_.size() < most) {
    const size_t index = workers_.size();
    Worker& worker = workers_.emplace_back();
    try {
      worker.thread = std::thread([this, index] { run(index); });
    } catch (const std::system_error& error) {
      workers_.pop_back();
      fail(ErrorKind::system,
           "the system gives {} of the {} threads that the models need ({}); see the limits of "
           "processes (ulimit -u, pids.max of a container), or ask for fewer with --threads",
           index, most, error.code().message());
    }
  }
}

void EngineThreads::wake() {
  Schedulers held;
  const std::lock_guard lock(mutex_);
  held = all();
  wake_others(held);
}

void EngineThreads::post(std::function<void()> task) {
  const std::lock_guard lock(mutex_);
  tasks_.push_back(std::move(task));
  workers_[0].call();
}

void EngineThreads::replace(Schedulers schedulers) {
  hire(schedulers);
  Schedulers held;
  {
    const std::lock_guard lock(mutex_);
    leaving_.insert(leaving_.end(), schedulers_.begin(), schedulers_.end());
    schedulers_.swap(schedulers);
    held = all();
    wake_others(held);
  }
}

// Those that leave first: their models' memory is free once they are done. Whoever has them may be
// the last to have them, and lets go of them without the mutex: freeing a model takes long.
EngineThreads::Schedulers EngineThreads::all() const {
  Schedulers all;
  for (const auto& one : leaving_) {
    if (auto scheduler = one.lock()) all.push_back(std::move(scheduler));
  }
  all.insert(all.end(), schedulers_.begin(), schedulers_.end());
  return all;
}

bool EngineThreads::has_work(const Schedulers& schedulers, size_t index) {
  return std::ranges::any_of(
      schedulers, [&](const auto& s) { return index < s->engines() && s->has_work(index); });
}

void EngineThreads::wake_others(const Schedulers& schedulers) {
  std::erase_if(leaving_, [](const auto& one) { return one.expired(); });
  for (size_t i = 0; i < workers_.size(); ++i) {
    if (workers_[i].is_asleep && has_work(schedulers, i)) workers_[i].call();
  }
}

void EngineThreads::run(size_t index) {
  for (;;) {
    std::function<void()> task;  // one: the sequences that run wait for no more between two steps
    Schedulers schedulers;
    {
      std::unique_lock lock(mutex_);
      if (is_ending_) return;
      schedulers = all();
      wake_others(schedulers);  // a step may have made room
      if (index == 0 && !tasks_.empty()) {
        task = std::move(tasks_.front());
        tasks_.pop_front();
      }
      if (!task && !has_work(schedulers, index)) {
        Worker& worker = workers_[index];
        worker.is_asleep = true, worker.is_called = false;
        lock.unlock();
        schedulers.clear();
        lock.lock();
        worker.wakes.wait(lock, [&] { return worker.is_called || is_ending_; });
        worker.is_asleep = false;
        continue;
      }
    }
    std::erase_if(schedulers, [&](const auto& s) { return index >= s->engines(); });
    try {
      if (task) task();
    } catch (const std::exception& error) {
      log_error("serve: {}", error.what());
    }
    for (const auto& scheduler : schedulers) {
      if (scheduler->has_work(index)) scheduler->step(Clock::now(), index);
    }
  }
}

}  // namespace heddle::serve
