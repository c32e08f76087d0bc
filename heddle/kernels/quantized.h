// Weights of four or eight bits in groups, as model files hold them and kernels read them.
#pragma once

#include <cstdint>
#include <span>

#include "heddle/tensor/rows.h"

namespace heddle {

/// A matrix w [rows, width] (outputs by inputs of a linear layer) of 4 or 8 bits: each row is cut
/// into groups of inner elements, and w = scale * q, with a scale of bf16 for each row and group,
/// and q from -8 to 7 or from -127 to 127. A view.
///
/// Rows lie in panels of 32, which are filled up with zeros, as are groups:
///   scales  [panels][groups][32 rows] bf16
///   values  8 bits: [panels][groups][group / 4][32 rows][4] two's complement
///           4 bits: [panels][groups][group / 8][32 rows][4], q + 8: of group / 8 steps byte i of
///           step s has element 4 s + i of the group in its lower half, and element
///           group / 2 + 4 s + i in its upper one
struct QuantizedRows {
  static constexpr int64_t kPanel = 32;

  const uint8_t* values = nullptr;  ///< null: there is no such matrix
  const bf16* scales = nullptr;
  int64_t rows = 0, width = 0;
  int bits = 8;        ///< 4 or 8
  int64_t group = 32;  ///< inner elements of a scale: 32 or 64

  int64_t panels() const { return (rows + kPanel - 1) / kPanel; }
  int64_t groups() const { return (width + group - 1) / group; }
  /// Bytes of the values of a group of a panel, of a panel, and of all; of all scales.
  int64_t group_bytes() const { return kPanel * group * bits / 8; }
  int64_t panel_bytes() const { return groups() * group_bytes(); }
  int64_t value_bytes() const { return panels() * panel_bytes(); }
  int64_t scale_count() const { return panels() * groups() * kPanel; }
  int64_t bytes() const { return value_bytes() + 2 * scale_count(); }
  /// What stands for zero in a value, once it is seen without a sign.
  int zero_point() const { return bits == 4 ? 8 : 128; }

  /// q and scale of an element.
  int value(int64_t row, int64_t column) const;
  float scale(int64_t row, int64_t column) const;
  float element(int64_t row, int64_t column) const {
    return scale(row, column) * static_cast<float>(value(row, column));
  }
};

/// Rounds w [w.rows, w.width] (f32), of the sizes and format of `to`, into memory of to.values and
/// to.scales, which are written in spite of their type. 8 bits: a group's scale is its largest
/// magnitude / 127, rounded up to bf16. 4 bits: of 25 scales around its largest magnitude / 8 the
/// one of the least squared error.
void quantize(const Rows& w, const QuantizedRows& to);
/// y[i] = row ids[i] of w as f32. y: [ids, w.width]
void dequantize(const QuantizedRows& w, std::span<const int32_t> ids, const Rows& y);
/// All rows. y: [w.rows, w.width], f32
void dequantize(const QuantizedRows& w, const Rows& y);

}  // namespace heddle
