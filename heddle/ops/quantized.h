// Weights of four or eight bits: products with them, and rows of them, without gradients.
#pragma once

#include <span>

#include "heddle/kernels/quantized.h"
#include "heddle/ops/matmul.h"

namespace heddle {

/// QuantizedRows and what holds them: memory of their own, or a mapped file.
class QuantizedTensor {
 public:
  /// values: u8 (4 bits) or i8 (8 bits) [panels, groups, bytes of a group]; scales: bf16 [panels,
  /// groups, 32]; of a matrix of `shape` [out, in]. Errors: shape, if these do not fit, or the
  /// group is neither 32 nor 64.
  QuantizedTensor(const Shape& shape, Tensor values, Tensor scales);
  /// w rounded to so many bits in groups of so many inner elements, see quantize(). w: [out, in],
  /// f32    Errors: usage for other bits than 4 and 8, other groups than 32 and 64.
  static QuantizedTensor rounded(const Tensor& w, int bits, int64_t group);

  const QuantizedRows& rows() const { return rows_; }
  const Tensor& values() const { return values_; }
  const Tensor& scales() const { return scales_; }
  /// "4 bits in groups of 32"
  std::string format() const;

 private:
  Tensor values_, scales_;
  QuantizedRows rows_;
};

/// activation(x wᵀ + bias) as linear() gives it, of x rounded to int8 in groups, see
/// GemmArgs::quantized_b. x: [rows, in], f32 or bf16, bias: [out] f32 or undefined; of the options
/// constant_w and int8 do not count    returns: [rows, out] or the outputs that are asked for
/// Errors: shape if the sizes do not fit; internal if a gradient is wanted.
Tensor quantized_linear(const Tensor& x, const QuantizedTensor& w, const Tensor& bias,
                        const LinearOptions& options = {});

/// All of w as f32: [out, in].
Tensor dequantized(const QuantizedTensor& w);
/// Rows of w as f32: [ids, in]. Errors: data if an id is outside.
Tensor dequantized_rows(const QuantizedTensor& w, std::span<const int32_t> ids);

}  // namespace heddle
