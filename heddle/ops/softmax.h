// Softmax over the last axis.
#pragma once

#include "heddle/autograd/tape.h"

namespace heddle {

/// y[i] = exp(x[i] - max x) / sum_j exp(x[j] - max x) over the last axis.
/// x: [..., n], f32 or bf16 (computed in f32)    returns: same shape and dtype as x
/// A row of all -inf gives zeros, not NaN: a query that may see nothing attends to nothing.
/// Source: Bridle 1990.
Tensor softmax(const Tensor& x);

}  // namespace heddle
