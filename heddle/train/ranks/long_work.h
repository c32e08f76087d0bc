// Work of a rank between updates that takes as long as it takes.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>

#include "heddle/dist/group.h"

namespace heddle::train {

/// While it lives, the other ranks hear from time to time that this one gets on. For validations
/// and saved states, which have no deadline.
class LongWork {
 public:
  LongWork(dist::Group& group, int64_t update);
  ~LongWork();
  LongWork(const LongWork&) = delete;
  LongWork& operator=(const LongWork&) = delete;

 private:
  std::mutex mutex_;
  std::condition_variable ended_;
  bool is_ended_ = false;
  std::thread thread_;  // none of a group of one
};

}  // namespace heddle::train
