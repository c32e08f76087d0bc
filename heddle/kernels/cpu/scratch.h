// Memory that a thread keeps between calls, so that kernels do not allocate.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace heddle::cpu {

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
