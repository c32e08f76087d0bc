// Memory that a thread keeps between calls, so that kernels do not allocate.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "heddle/base/error.h"

namespace heddle::cpu {

/// Memory that grows when asked, aligned to 64 bytes; 2 MB and more lie in large pages, which are
/// read faster.
class Buffer {
 public:
  Buffer() = default;
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer() { std::free(data_); }

  /// At least `bytes`, not initialised; what was there is lost when it grows. Errors: system if
  /// there is no memory; it may be asked again.
  char* reserve(int64_t bytes) {
    if (bytes <= bytes_) return data_;
    std::free(data_);
    data_ = nullptr, bytes_ = 0;
    const bool large = bytes >= kLargePage;
    const size_t align = large ? kLargePage : 64;
    const size_t size = (static_cast<size_t>(bytes) + align - 1) / align * align;
    data_ = static_cast<char*>(std::aligned_alloc(align, size));
    check(data_ != nullptr, ErrorKind::system,
          "out of memory: {} bytes were needed; use a smaller batch or model", bytes);
    bytes_ = static_cast<int64_t>(size);
    if (large) madvise(data_, size, MADV_HUGEPAGE);
    return data_;
  }
  char* data() const { return data_; }

 private:
  static constexpr int64_t kLargePage = 2 << 20;

  char* data_ = nullptr;
  int64_t bytes_ = 0;
};

/// At least n elements of the calling thread, not initialised; the next call with the same T and
/// Slot in this thread may move them.
template <class T, int Slot = 0>
T* scratch(int64_t n) {
  thread_local std::vector<T> memory;
  if (static_cast<int64_t>(memory.size()) < n) memory.resize(static_cast<size_t>(n + n / 2));
  return memory.data();
}

/// Rows in a block of work, so that a block touches about 32 KB: threads are not worth less.
inline int64_t rows_per_block(int64_t bytes_per_row) {
  const int64_t rows = (32 << 10) / (bytes_per_row < 1 ? 1 : bytes_per_row);
  return rows < 1 ? 1 : rows;
}

}  // namespace heddle::cpu
