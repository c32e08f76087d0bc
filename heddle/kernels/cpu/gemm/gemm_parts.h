// Products with a long inner dimension and a small result, as weight gradients are, in parts of the
// inner dimension: threads that shared the result out would each read and pack a whole factor.
#pragma once

#include "heddle/kernels/cpu/gemm/gemm_block.h"
#include "heddle/kernels/gemm.h"

namespace heddle::cpu {

/// How many parts; 1: the product is not cut. It follows from the sizes alone, so threads change no
/// bit.
int64_t inner_parts(const GemmCode& code, const GemmArgs& g);

/// Multiplies all parts, each by `multiply`, and adds them up in order.
void multiply_in_parts(const GemmArgs& g, int64_t parts, void (*multiply)(const GemmArgs&));

}  // namespace heddle::cpu
