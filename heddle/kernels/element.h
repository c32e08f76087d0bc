// One element of rows, for definitions in plain loops.
#pragma once

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

}  // namespace heddle
