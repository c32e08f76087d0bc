// Gathered once, then a constant factor like any other: packed at its second use.
#include "heddle/nn/output_rows.h"

#include "heddle/kernels/kernels.h"
#include "heddle/ops/embedding.h"

namespace heddle::nn {

OutputRows::OutputRows(const OutputProjection& output, std::span<const int32_t> ids, const Run& run)
    : constant_(new_constant()), int8_(false) {
  check(output.is_product(), ErrorKind::usage,
        "the model's output is an adaptive softmax; some of its tokens alone cannot be computed");
  Parameter& parameter = *output.parameter();
  if (const QuantizedTensor* few_bits = parameter.quantized()) {
    weight_ = dequantized_rows(*few_bits, ids);
  } else {
    const WeightInUse used(parameter, run);
    weight_ = gather_rows(used.w, ids);
    int8_ = used.int8;
  }
  const Tensor bias = output.bias();
  if (!bias.defined()) return;
  bias_ = gather_rows(bias.view({bias.size(0), 1}), ids).view({std::ssize(ids)});
}

OutputRows::~OutputRows() { forget_packed(constant_); }

Tensor OutputRows::operator()(const Tensor& h) const {
  return linear(h, weight_, bias_, {.constant_w = constant_, .int8 = int8_, .result = DType::f32});
}

}  // namespace heddle::nn
