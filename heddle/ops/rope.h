// Rotary positions: queries and keys turned by angles that grow with their place.
#pragma once

#include <span>

#include "heddle/autograd/tape.h"

namespace heddle {

struct RopeOptions {
  int64_t head_width = 2;  ///< d, even
  int64_t columns = 0;     ///< leading columns that are turned, a multiple of d; the rest is copied
  double theta = 10000;    ///< base of the frequencies
};

/// In each block of d columns, pair j < d/2 at place p turns by the angle a = p theta^(-2j/d):
///   y[j] = x[j] cos a - x[j + d/2] sin a,  y[j + d/2] = x[j] sin a + x[j + d/2] cos a
/// so that the product of a query and a key depends on the distance of their places only.
/// x: [rows, columns or more], places: [rows]    returns: the shape and dtype of x
/// Errors: shape if the sizes do not fit. Source: Su et al. 2021, "RoFormer", section 3.2.2; pairs
/// half a head apart as in LLaMA's checkpoints.
Tensor rope(const Tensor& x, std::span<const int32_t> places, const RopeOptions& options);

}  // namespace heddle
