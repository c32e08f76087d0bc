// Whether the arguments of a matrix product fit each other.
#pragma once

#include "heddle/kernels/gemm.h"

namespace heddle::cpu {

/// Whether b is QuantizedRows.
inline bool is_quantized(const GemmArgs& g) { return g.quantized_b.values != nullptr; }

/// Errors: internal if a product is asked for that GemmArgs does not allow.
void check_gemm(const GemmArgs& g);

}  // namespace heddle::cpu
