// Reference-counted memory from a caching allocator.
#pragma once

#include <cstdint>
#include <memory>

namespace heddle {

/// A block of bytes in large pages, aligned to 64.
class Storage {
 public:
  /// Uninitialised memory of at least `bytes`. Errors: system when there is none left.
  static std::shared_ptr<Storage> allocate(int64_t bytes);
  /// Memory that somebody else owns (a mapped file); `owner` is kept alive.
  static std::shared_ptr<Storage> borrow(void* data, int64_t bytes, std::shared_ptr<void> owner);

  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;
  ~Storage();

  void* data() const { return data_; }
  int64_t bytes() const { return bytes_; }
  bool is_borrowed() const { return capacity_ == 0; }

 private:
  Storage() = default;
  void* data_ = nullptr;
  int64_t bytes_ = 0;
  int64_t capacity_ = 0;  // 0: borrowed
  std::shared_ptr<void> owner_;
};

/// While it lives, blocks that its thread asks for are addresses alone: zeros that take memory only
/// where they are written; copies of tensors are zeros too. For a pass that computes nothing. The
/// blocks may outlive it.
class UntouchedMemory {
 public:
  UntouchedMemory();
  ~UntouchedMemory();
  UntouchedMemory(const UntouchedMemory&) = delete;
  UntouchedMemory& operator=(const UntouchedMemory&) = delete;

  /// Bytes of the blocks that live.
  int64_t in_use() const { return *in_use_; }
  /// Whether a block that is asked for now holds zeros.
  static bool is_used();

 private:
  std::shared_ptr<int64_t> in_use_, before_;
};

/// Counters of the caching allocator, in bytes.
struct AllocatorStats {
  int64_t in_use = 0;
  int64_t peak = 0;
  int64_t cached = 0;
  int64_t system_allocations = 0;  ///< how often the system was asked: steady after warm-up
};
AllocatorStats allocator_stats();
/// Lets `peak` begin again from what is in use.
void reset_allocator_peak();

/// Gives all cached blocks back to the system.
void release_cached_memory();

/// Fills every block handed out with NaN bytes (0xff). A test sets it: results must not change.
void set_fill_allocations(bool fill);

}  // namespace heddle
