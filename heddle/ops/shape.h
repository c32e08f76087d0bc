// Views and copies that change the shape, with gradients.
#pragma once

#include <vector>

#include "heddle/autograd/tape.h"
#include "heddle/tensor/segments.h"

namespace heddle {

/// The same elements in another shape. x must be contiguous.
Tensor reshape(const Tensor& x, const Shape& shape);
/// Elements [begin, begin + count) along an axis: a view.
Tensor slice(const Tensor& x, int axis, int64_t begin, int64_t count);
/// A contiguous copy with two axes swapped.
Tensor transpose(const Tensor& x, int axis_a, int axis_b);
/// Tensors laid side by side along an axis; all other sizes equal.
Tensor concat(const std::vector<Tensor>& parts, int axis);
/// Each segment of a, then that of b: a_0 b_0 a_1 b_1 .. a: [rows of sa, width], b: [rows of sb,
/// width] of one dtype    returns: [rows of both, width]    Errors: shape if they do not fit.
Tensor join_segments(const Tensor& a, const Segments& sa, const Tensor& b, const Segments& sb);

}  // namespace heddle
