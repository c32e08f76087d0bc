// Products with weights of few bits by the one driver; what holds them.
#include "heddle/ops/quantized.h"

#include <utility>

namespace heddle {

QuantizedTensor::QuantizedTensor(const Shape& shape, Tensor values, Tensor scales)
    : values_(std::move(values)), scales_(std::move(scales)) {
  const bool is_four = values_.dtype() == DType::u8;
  check(shape.rank() == 2 && values_.rank() == 3 && (is_four || values_.dtype() == DType::i8) &&
            scales_.dtype() == DType::bf16,
        ErrorKind::shape, "a quantized matrix {} has values {} {} and scales {} {}", shape,
        values_.shape(), dtype_name(values_.dtype()), scales_.shape(), dtype_name(scales_.dtype()));
  rows_ = {.values = static_cast<const uint8_t*>(values_.rows().data),
           .scales = scales_.data<bf16>(),
           .rows = shape[0],
           .width = shape[1],
           .bits = is_four ? 4 : 8};
  rows_.group = values_.size(2) * 8 / rows_.bits / rows_.kPanel;
  const bool has_group = rows_.group == 32 || rows_.group == 64;
  const Shape of_values = {rows_.panels(), rows_.groups(), rows_.group_bytes()};
  const Shape of_scales = {rows_.panels(), rows_.groups(), rows_.kPanel};
  check(has_group && values_.shape() == of_values && scales_.shape() == of_scales, ErrorKind::shape,
        "a matrix {} of {} needs values {} and scales {} (groups of 32 or 64), but they are {} and "
        "{}",
        shape, format(), of_values, of_scales, values_.shape(), scales_.shape());
}

QuantizedTensor QuantizedTensor::rounded(const Tensor& w, int bits, int64_t group) {
  check((bits == 4 || bits == 8) && (group == 32 || group == 64), ErrorKind::usage,
        "{} bits in groups of {}: there are 4 and 8 bits, and groups of 32 and 64", bits, group);
  const QuantizedRows sizes = {.rows = w.size(0), .width = w.size(1), .bits = bits, .group = group};
  QuantizedTensor q(w.shape(),
                    Tensor::empty({sizes.panels(), sizes.groups(), sizes.group_bytes()},
                                  bits == 4 ? DType::u8 : DType::i8),
                    Tensor::empty({sizes.panels(), sizes.groups(), sizes.kPanel}, DType::bf16));
  quantize(w.rows(), q.rows());
  return q;
}

std::string QuantizedTensor::format() const {
  return fmt::format("{} bits in groups of {}", rows_.bits, rows_.group);
}

Tensor quantized_linear(const Tensor& x, const QuantizedTensor& w, const Tensor& bias,
                        const LinearOptions& options) {
  const QuantizedRows& rows = w.rows();
  check(x.rank() == 2 && x.size(1) == rows.width, ErrorKind::shape,
        "linear: x is {}, the weight is [{}, {}]; the last axes must be equal", x.shape(),
        rows.rows, rows.width);
  check_bias("linear", bias, rows.rows);
  check(!needs_grad({&x, &bias}), ErrorKind::internal,
        "linear: a weight of {} has no gradient; take dequantized() of it", w.format());
  const int64_t outputs = options.count < 0 ? rows.rows - options.first : options.count;
  check(options.first >= 0 && outputs >= 0 && options.first + outputs <= rows.rows,
        ErrorKind::internal, "linear: {} outputs from {} on of {}", outputs, options.first,
        rows.rows);
  Tensor y = Tensor::empty({x.size(0), outputs}, options.result.value_or(x.dtype()));
  kernels().gemm({.a = x.rows(),
                  .c = y.rows(),
                  .bias = bias.defined() ? bias.data<float>() + options.first : nullptr,
                  .first = options.first,
                  .added = options.added.defined() ? options.added.rows() : Rows(),
                  .activation = options.activation,
                  .quantized_b = rows});
  return y;
}

Tensor dequantized(const QuantizedTensor& w) {
  Tensor y = Tensor::empty({w.rows().rows, w.rows().width}, DType::f32);
  dequantize(w.rows(), y.rows());
  return y;
}

Tensor dequantized_rows(const QuantizedTensor& w, std::span<const int32_t> ids) {
  for (const int32_t id : ids) {
    check(id >= 0 && id < w.rows().rows, ErrorKind::data, "id {} is outside of a table of {} rows",
          id, w.rows().rows);
  }
  Tensor y = Tensor::empty({static_cast<int64_t>(ids.size()), w.rows().width}, DType::f32);
  dequantize(w.rows(), ids, y.rows());
  return y;
}

}  // namespace heddle
