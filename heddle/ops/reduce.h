// Sums over all elements, and softmax over the last axis.
#pragma once

#include "heddle/autograd/tape.h"
#include "heddle/tensor/segments.h"

namespace heddle {

/// The sum of all elements. returns: [1] f32; rows are summed first, then their sums in order.
Tensor sum(const Tensor& x);
/// sum(x * w) for a constant w of the same shape: turns any tensor into a loss in tests.
Tensor dot(const Tensor& x, const Tensor& w);

/// The mean of the rows of each segment: the average over an image.
/// x: [rows, width], f32 or bf16 (summed in f32)    returns: [segments, width] of the dtype of x
/// Errors: shape if the segments are not of so many rows, or one is empty.
Tensor segment_mean(const Tensor& x, const Segments& segments);

/// y[i] = exp(x[i] - max x) / sum_j exp(x[j] - max x) over the last axis.
/// x: [..., n], f32 or bf16 (computed in f32)    returns: same shape and dtype as x
/// A row of all -inf gives zeros, not NaN: a query that may see nothing attends to nothing.
/// Source: Bridle 1990.
Tensor softmax(const Tensor& x);

}  // namespace heddle
