// Kernels element by element; x, y of any mix of f32 and bf16 unless stated.
#pragma once

#include "heddle/kernels/family.h"

namespace heddle {

inline Work work_of(float, const Rows& x, float beta, const Rows& y) {  // axpby
  return {bytes_of(x) + (beta == 0 ? 1 : 2) * bytes_of(y), 0};
}

namespace definition {

inline void convert(Rows x, Rows y) {
  fill_elements(y, [&](int64_t r, int64_t c) { return element(x, r, c); });
}
inline void add(Rows a, Rows b, Rows y) {
  fill_elements(y, [&](int64_t r, int64_t c) { return element(a, r, c) + element(b, r, c); });
}
inline void mul(Rows a, Rows b, Rows y) {
  fill_elements(y, [&](int64_t r, int64_t c) { return element(a, r, c) * element(b, r, c); });
}
inline void axpby(float alpha, Rows x, float beta, Rows y) {
  fill_elements(y, [&](int64_t r, int64_t c) {
    return alpha * element(x, r, c) + (beta == 0 ? 0 : beta * element(y, r, c));
  });
}
inline void add_row(Rows x, const float* bias, Rows y) {
  fill_elements(y, [&](int64_t r, int64_t c) { return element(x, r, c) + bias[c]; });
}

}  // namespace definition

struct ElementwiseKernels {
  void (*convert)(Rows x, Rows y);      ///< y = x, rounded to nearest even
  void (*add)(Rows a, Rows b, Rows y);  ///< y = a + b, y may alias
  void (*mul)(Rows a, Rows b, Rows y);  ///< y = a * b
  /// y = alpha x + beta y (beta 0: not read)
  void (*axpby)(float alpha, Rows x, float beta, Rows y);
  void (*add_row)(Rows x, const float* bias, Rows y);  ///< y[r] = x[r] + bias

  static ElementwiseKernels of_cpu();
  static void list(const auto& visit) {
    HEDDLE_LIST_KERNEL(ElementwiseKernels, convert);
    HEDDLE_LIST_KERNEL(ElementwiseKernels, add);
    HEDDLE_LIST_KERNEL(ElementwiseKernels, mul);
    HEDDLE_LIST_KERNEL(ElementwiseKernels, axpby);
    HEDDLE_LIST_KERNEL(ElementwiseKernels, add_row);
  }
};

}  // namespace heddle
