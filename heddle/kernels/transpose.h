// Kernels that swap the axes of matrices.
#pragma once

#include "heddle/kernels/family.h"

namespace heddle {

/// Matrices of `height` rows each, end to end in x; in y each has its axes swapped.
struct TransposeArgs {
  Rows x = {};  ///< [matrices * height, width]
  Rows y = {};  ///< [matrices * width, height], of the dtype of x
  int64_t height = 0;
};

inline Work work_of(const TransposeArgs& a) { return {bytes_of(a.x) + bytes_of(a.y), 0}; }

namespace definition {

inline void transpose(const TransposeArgs& a) {
  for (int64_t r = 0; r < a.y.rows; ++r) {
    const int64_t first = r / a.x.width * a.height;
    for (int64_t i = 0; i < a.height; ++i) {
      set_element(a.y, r, i, element(a.x, first + i, r % a.x.width));
    }
  }
}

}  // namespace definition

struct TransposeKernels {
  void (*transpose)(const TransposeArgs&);

  static TransposeKernels of_cpu();
  static void list(const auto& visit) { HEDDLE_LIST_KERNEL(TransposeKernels, transpose); }
};

}  // namespace heddle
