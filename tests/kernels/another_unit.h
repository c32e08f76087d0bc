// Units of matrix products beside the one that this machine takes, for tests that run in a child.
#pragma once

#include <string_view>

#include "heddle/kernels/cpu/matrix_unit.h"

namespace heddle::kernel_test {

/// Whether this machine takes another unit than `unit`, a name that HEDDLE_MATRIX_UNIT may have,
/// but has it.
inline bool is_another_here(std::string_view unit) {
  if (unit == "avx2") return vector_set() == "avx512";
#if defined(__x86_64__)
  // Which is not taken where it is slow.
  if (unit == "avx512_bf16" && matrix_unit() == MatrixUnit::avx512_fma) {
    return __builtin_cpu_supports("avx512bf16");
  }
#endif
  for (int less = 0; less < static_cast<int>(matrix_unit()); ++less) {
    if (matrix_unit_name(static_cast<MatrixUnit>(less)) == unit) return true;
  }
  return false;
}

}  // namespace heddle::kernel_test
