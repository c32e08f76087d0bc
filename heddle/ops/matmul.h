// Matrix products and the linear layer.
#pragma once

#include "heddle/autograd/tape.h"
#include "heddle/kernels/kernels.h"

namespace heddle {

/// a b. a: [m, k], b: [k, n], same dtype    returns: [m, n] of that dtype, summed in f32
Tensor matmul(const Tensor& a, const Tensor& b);

struct LinearOptions {
  Activation activation = Activation::none;  ///< of the result, while it lies in the cache
  uint64_t constant_w = 0;                   ///< see GemmArgs::constant_b; 0 in training
};

/// activation(x wᵀ + bias). x: [rows, in], w: [out, in] of the dtype of x, bias: [out] f32 or
/// undefined    returns: [rows, out] of the dtype of x. With `constant_w`, w may also be f32 where
/// x is bf16: it counts as rounded. Errors: shape if the sizes do not fit.
Tensor linear(const Tensor& x, const Tensor& w, const Tensor& bias,
              const LinearOptions& options = {});
/// The same in int8 (GemmArgs::int8), without a gradient. x: f32 or bf16, w: f32
/// returns: [rows, out] of dtype `out`
Tensor linear_int8(const Tensor& x, const Tensor& w, const Tensor& bias,
                   const LinearOptions& options, DType out);
/// The plain definition: transpose, matmul, add_bias, activation.
Tensor linear_reference(const Tensor& x, const Tensor& w, const Tensor& bias,
                        Activation kind = Activation::none);

}  // namespace heddle
