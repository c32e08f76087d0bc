// What the headers of the families share: an element of rows, for definitions in plain loops, and
// the bytes of a call, from its arguments.
#pragma once

#include "heddle/base/profile.h"
#include "heddle/tensor/rows.h"

namespace heddle {

/// Of f32 or bf16.
inline double element(const Rows& x, int64_t r, int64_t c) {
  return x.dtype == DType::f32 ? x.row<float>(r)[c] : static_cast<float>(x.row<bf16>(r)[c]);
}
inline void set_element(const Rows& x, int64_t r, int64_t c, double value) {
  if (x.dtype == DType::f32) {
    x.row<float>(r)[c] = static_cast<float>(value);
  } else {
    x.row<bf16>(r)[c] = bf16(static_cast<float>(value));
  }
}
/// y[r, c] = f(r, c) for each element of y.
template <class F>
void fill_elements(const Rows& y, const F& f) {
  for (int64_t r = 0; r < y.rows; ++r) {
    for (int64_t c = 0; c < y.width; ++c) set_element(y, r, c, f(r, c));
  }
}

// Bytes are those of the rows that go in and out, each once: what has to move if nothing stays in
// cache. Vectors of a row's width (biases, ids, means) are left out.

inline int64_t row_bytes(const Rows& x) { return x.width * static_cast<int64_t>(size_of(x.dtype)); }
inline int64_t bytes_of(const Rows& x) { return x.data == nullptr ? 0 : x.rows * row_bytes(x); }
template <class T>
int64_t bytes_of(const T&) {
  return 0;
}

/// One line of a family's list(visit): the pointer of that name, with its definition.
#define HEDDLE_LIST_KERNEL(Family, name) \
  visit.template operator()<&Family::name, definition::name>(#name)

/// All row views among the arguments: right for a kernel that reads or writes each once. Where that
/// is wrong, or arguments come in a struct, the family has an overload.
template <class... Args>
Work work_of(const Args&... args) {
  return {(int64_t{0} + ... + bytes_of(args)), 0};
}

}  // namespace heddle
