// Matrix products and the linear layer.
#pragma once

#include <optional>

#include "heddle/autograd/tape.h"
#include "heddle/kernels/kernels.h"

namespace heddle {

/// a b. a: [m, k], b: [k, n], same dtype    returns: [m, n] of that dtype, summed in f32
Tensor matmul(const Tensor& a, const Tensor& b);

struct LinearOptions {
  Activation activation = Activation::none;  ///< of the result, while it lies in the cache
  // Where no gradient is wanted:
  uint64_t constant_w = 0;  ///< see GemmArgs::constant_b; w may then be f32 where x is bf16
  bool int8 = false;        ///< see GemmArgs::int8; needs constant_w and an f32 w
  std::optional<DType> result = {};  ///< of the dtype of x or f32; absent: of that of x
  int64_t first = 0;                 ///< output to begin with, a multiple of 64, and how many
  int64_t count = -1;                ///< (-1: to the last); needs constant_w
  Tensor added = {};  ///< of the result's shape and dtype, added before the activation
  bool may_overwrite_added = false;  ///< nobody needs it any more: the result may take its memory
};

/// Errors: shape unless a product's bias is undefined or [outputs] f32. For ops that have one.
void check_bias(const char* name, const Tensor& bias, int64_t outputs);

/// activation(x wᵀ + bias). x: [rows, in], w: [out, in] of the dtype of x, bias: [out] f32 or
/// undefined    returns: [rows, out]. An f32 w counts as rounded to the dtype of x.
/// Errors: shape if the sizes do not fit.
Tensor linear(const Tensor& x, const Tensor& w, const Tensor& bias,
              const LinearOptions& options = {});

}  // namespace heddle
