// Like chunks of some items.
#pragma once

#include <algorithm>
#include <cstdint>

namespace heddle {

/// Chunks of items, as few as `most_bytes` allow for each (but two blocks are always allowed), of
/// whole blocks but for the end of the last, alike within a block: the last is no small rest.
class LikeChunks {
 public:
  LikeChunks(int64_t items, int64_t block, int64_t item_bytes, int64_t most_bytes)
      : items_(items), block_(block) {
    const int64_t most =
        std::max<int64_t>(2, most_bytes / std::max<int64_t>(1, item_bytes * block));
    blocks_ = (items + block - 1) / block;
    count_ = (blocks_ + most - 1) / most;
  }

  int64_t count() const { return count_; }
  /// The item at which chunk i begins; begin(count()) is their number.
  int64_t begin(int64_t i) const {
    return count_ == 0 ? 0 : std::min(items_, i * blocks_ / count_ * block_);
  }
  /// Items of the longest chunk.
  int64_t longest() const {
    return count_ == 0 ? 0 : std::min(items_, ((blocks_ - 1) / count_ + 1) * block_);
  }

 private:
  int64_t items_, block_, blocks_ = 0, count_ = 0;
};

}  // namespace heddle
