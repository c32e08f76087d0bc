// Rounding rows to int8, and the packed form of int8 weights.
#pragma once

#include <cstdint>

#include "heddle/tensor/rows.h"

namespace heddle::cpu {

/// Inner sizes up to this keep 32 bits from overflowing: 255 * 127 * 2^16 < 2^31.
inline constexpr int64_t kMostInt8Inner = 1 << 16;

/// q[r] = x[r] / scale[r], rounded to nearest even, plus zero_point (0 or -128, then q is to be
/// read as unsigned); scale[r] = max |x[r]| / 127, or 0 for a row of zeros. Columns of q beyond
/// those of x stand for zero. x: f32 or bf16; NaN and infinity give a NaN scale.
void quantize_rows(const Rows& x, int8_t zero_point, const Rows& q, float* scale);

/// Columns of a panel of pack_int8().
inline constexpr int64_t kInt8Columns = 32;
/// What follows the elements of such a panel.
struct Int8Columns {
  float scale[kInt8Columns];     ///< of each column
  int32_t sum128[kInt8Columns];  ///< 128 times the sum of its elements
};
/// Packs up to 32 rows of b [n, inner] (f32 or bf16) as a panel of columns of int8, for AMX and for
/// VNNI: [inner / 64][2][16 quads of inner][16 columns][4], and then Int8Columns.
void pack_int8(const Rows& b, bool transposed, void* panel);

}  // namespace heddle::cpu
