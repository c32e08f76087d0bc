// Sums over all elements.
#pragma once

#include "heddle/autograd/tape.h"

namespace heddle {

/// The sum of all elements. returns: [1] f32; rows are summed first, then their sums in order.
Tensor sum(const Tensor& x);
/// sum(x * w) for a constant w of the same shape: turns any tensor into a loss in tests.
Tensor dot(const Tensor& x, const Tensor& w);

}  // namespace heddle
