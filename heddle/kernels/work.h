// Bytes and floating-point operations of a kernel call, from its arguments.
#pragma once

#include "heddle/base/profile.h"
#include "heddle/tensor/rows.h"

namespace heddle {

// Bytes are those of the rows that go in and out, each once: what has to move if nothing stays in
// cache. Vectors of a row's width (biases, ids, means) are left out.

inline int64_t row_bytes(const Rows& x) { return x.width * static_cast<int64_t>(size_of(x.dtype)); }
inline int64_t bytes_of(const Rows& x) { return x.data == nullptr ? 0 : x.rows * row_bytes(x); }
template <class T>
int64_t bytes_of(const T&) {
  return 0;
}

/// All row views among the arguments: right for a kernel that reads or writes each once. Where that
/// is wrong, or arguments come in a struct, the family has an overload.
template <class... Args>
Work work_of(const Args&... args) {
  return {(int64_t{0} + ... + bytes_of(args)), 0};
}

}  // namespace heddle
