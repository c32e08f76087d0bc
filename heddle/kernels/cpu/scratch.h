// Memory that a thread keeps between calls, so that kernels do not allocate.
#pragma once

#include <cstdint>

#include "heddle/base/error.h"
#include "heddle/base/large_pages.h"

namespace heddle::cpu {

/// Memory that grows when asked, in large pages, aligned to 64 bytes.
class Buffer {
 public:
  Buffer() = default;
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer() { free_in_large_pages(data_, bytes_); }

  /// At least `bytes`, not initialised; what was there is lost when it grows. Errors: system if
  /// there is no memory; it may be asked again.
  char* reserve(int64_t bytes) {
    if (bytes <= bytes_) return data_;
    free_in_large_pages(data_, bytes_);
    data_ = nullptr, bytes_ = 0;
    data_ = static_cast<char*>(allocate_in_large_pages(bytes));
    check(data_ != nullptr, ErrorKind::system,
          "out of memory: {} bytes were needed; use a smaller batch or model", bytes);
    bytes_ = bytes;
    return data_;
  }
  char* data() const { return data_; }

 private:
  char* data_ = nullptr;
  int64_t bytes_ = 0;
};

/// At least n elements of the calling thread, not initialised; the next call with the same T and
/// Slot in this thread may move them.
template <class T, int Slot = 0>
T* scratch(int64_t n) {
  thread_local Buffer memory;
  thread_local int64_t size = 0;
  if (size < n) size = n + n / 2;
  return reinterpret_cast<T*>(memory.reserve(size * static_cast<int64_t>(sizeof(T))));
}

/// Rows in a block of work, so that a block touches about 32 KB: threads are not worth less.
inline int64_t rows_per_block(int64_t bytes_per_row) {
  const int64_t rows = (32 << 10) / (bytes_per_row < 1 ? 1 : bytes_per_row);
  return rows < 1 ? 1 : rows;
}

}  // namespace heddle::cpu
