// Views and copies that change the shape, with gradients.
#pragma once

#include <vector>

#include "heddle/autograd/tape.h"

namespace heddle {

/// The same elements in another shape. x must be contiguous.
Tensor reshape(const Tensor& x, const Shape& shape);
/// Elements [begin, begin + count) along an axis: a view.
Tensor slice(const Tensor& x, int axis, int64_t begin, int64_t count);
/// A contiguous copy with two axes swapped.
Tensor transpose(const Tensor& x, int axis_a, int axis_b);
/// Tensors laid side by side along an axis; all other sizes equal.
Tensor concat(const std::vector<Tensor>& parts, int axis);

}  // namespace heddle
