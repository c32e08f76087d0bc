// Sums, products and activations, element by element.
#pragma once

#include "heddle/ops/dropout.h"

namespace heddle {

/// a + b. a, b: same shape; the result has the dtype of a.  Errors: shape if they differ.
Tensor add(const Tensor& a, const Tensor& b);
/// a * b, element by element. a, b: same shape; the result has the dtype of a.
Tensor mul(const Tensor& a, const Tensor& b);
/// factor * x.
Tensor scale(const Tensor& x, float factor);
/// x + bias for each row. x: [..., n], bias: [n] f32.
Tensor add_bias(const Tensor& x, const Tensor& bias);
/// x in another floating dtype; gradients come back in the dtype of x.
Tensor cast(const Tensor& x, DType dtype);
/// dropout(activation(x)). Kinds: relu, gelu (erf), gelu_new (tanh), silu, tanh.
/// x: [rows, width]    Source: gelu Hendrycks & Gimpel 2016; silu Elfwing et al. 2018.
Tensor activation(Activation kind, const Tensor& x, const DropoutSpec& spec = {});

inline Tensor operator+(const Tensor& a, const Tensor& b) { return add(a, b); }
inline Tensor operator*(const Tensor& a, const Tensor& b) { return mul(a, b); }

}  // namespace heddle
