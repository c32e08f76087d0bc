// Rounding rows of activations to int8 in groups, for weights in groups (QuantizedRows).
#pragma once

#include <cstdint>

#include "heddle/tensor/rows.h"

namespace heddle::cpu {

/// What stands behind the elements of a rounded row, for each of its groups.
struct RoundedGroup {
  float scale;     ///< what a unit stands for: max |x| / 127, or 0
  int32_t offset;  ///< where sums of products with weights that have no sign begin: the sum of the
                   ///< group, times -zero_point
};

/// Bytes of a row of `width` elements, a multiple of the group, and what stands behind them.
inline int64_t rounded_row_bytes(int64_t width, int64_t group) {
  return width + width / group * static_cast<int64_t>(sizeof(RoundedGroup));
}

/// q[r] = x[r] / scale of the group, rounded to nearest even, then the groups. x: f32 or bf16;
/// elements beyond it are zero. q: rows of `width` int8 elements, a multiple of the group, and
/// rounded_row_bytes() long. NaN and infinity give a NaN scale.
void round_groups(const Rows& x, int64_t group, int zero_point, const Rows& q);

}  // namespace heddle::cpu
