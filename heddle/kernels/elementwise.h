// Kernels element by element; x, y of any mix of f32 and bf16 unless stated.
#pragma once

#include "heddle/kernels/work.h"

namespace heddle {

inline Work work_of(float, const Rows& x, float beta, const Rows& y) {  // axpby
  return {bytes_of(x) + (beta == 0 ? 1 : 2) * bytes_of(y), 0};
}

struct ElementwiseKernels {
  void (*convert)(Rows x, Rows y);      ///< y = x, rounded to nearest even
  void (*add)(Rows a, Rows b, Rows y);  ///< y = a + b, y may alias
  void (*mul)(Rows a, Rows b, Rows y);  ///< y = a * b
  /// y = alpha x + beta y (beta 0: not read)
  void (*axpby)(float alpha, Rows x, float beta, Rows y);
  void (*add_row)(Rows x, const float* bias, Rows y);  ///< y[r] = x[r] + bias
  void (*exp)(Rows x, Rows y);

  /// visit.operator()<&pointer>(name) for each.
  template <class Visit>
  static void list(const Visit& visit) {
    visit.template operator()<&ElementwiseKernels::convert>("convert");
    visit.template operator()<&ElementwiseKernels::add>("add");
    visit.template operator()<&ElementwiseKernels::mul>("mul");
    visit.template operator()<&ElementwiseKernels::axpby>("axpby");
    visit.template operator()<&ElementwiseKernels::add_row>("add_row");
    visit.template operator()<&ElementwiseKernels::exp>("exp");
  }
};

namespace cpu {
ElementwiseKernels elementwise_kernels();
}

}  // namespace heddle
