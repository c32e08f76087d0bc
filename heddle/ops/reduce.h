// Sums over all elements, and softmax over the last axis.
#pragma once

#include "heddle/autograd/tape.h"

namespace heddle {

/// The sum of all elements. returns: [1] f32; rows are summed first, then their sums in order.
Tensor sum(const Tensor& x);
/// sum(x * w) for a constant w of the same shape: turns any tensor into a loss in tests.
Tensor dot(const Tensor& x, const Tensor& w);

/// y[i] = exp(x[i] - max x) / sum_j exp(x[j] - max x) over the last axis.
/// x: [..., n], f32 or bf16 (computed in f32)    returns: same shape and dtype as x
/// A row of all -inf gives zeros, not NaN: a query that may see nothing attends to nothing.
/// Source: Bridle 1990.
Tensor softmax(const Tensor& x);

}  // namespace heddle
