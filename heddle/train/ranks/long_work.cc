// A thread that says so.
#include "heddle/train/ranks/long_work.h"

#include <chrono>

namespace heddle::train {

LongWork::LongWork(dist::Group& group, int64_t update) {
  if (group.is_alone()) return;
  thread_ = std::thread([this, &group, update] {
    constexpr auto kInterval = std::chrono::seconds(10);
    std::unique_lock lock(mutex_);
    while (!ended_.wait_for(lock, kInterval, [this] { return is_ended_; })) {
      group.note_update(update);
    }
  });
}

LongWork::~LongWork() {
  {
    const std::lock_guard lock(mutex_);
    is_ended_ = true;
  }
  ended_.notify_one();
  if (thread_.joinable()) thread_.join();
}

}  // namespace heddle::train
