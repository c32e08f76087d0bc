// Layer norm, alone and fused with the residual sum and dropout before it, and group norm.
#pragma once

#include "heddle/ops/dropout.h"
#include "heddle/tensor/segments.h"

namespace heddle {

/// y = gamma * (x - mean) / sqrt(var + eps) + beta over the last axis, biased variance, two passes;
/// where beta is undefined RMS norm, y = gamma * x / sqrt(mean x² + eps).
/// x: [rows, width], gamma, beta: [width] f32    returns: the shape and dtype of x
/// Source: Ba et al. 2016; RMS norm: Zhang & Sennrich 2019.
Tensor layer_norm(const Tensor& x, const Tensor& gamma, const Tensor& beta, float eps);

/// y = gamma * (x - mean) / sqrt(var + eps) + beta, mean and biased variance of each segment (an
/// image) over all its rows and the width / groups columns of a group.
/// x: [rows, width], gamma, beta: [width] f32    returns: the shape and dtype of x; rows outside
/// the segments are not written
/// Errors: shape if the sizes do not fit or groups do not divide the width.    Source: Wu & He
/// 2018.
Tensor group_norm(const Tensor& x, const Tensor& gamma, const Tensor& beta,
                  const Segments& segments, int64_t groups, float eps);

/// A residual sum and its norm.
struct AddNorm {
  Tensor sum;   ///< h = x + dropout(sub)
  Tensor norm;  ///< layer_norm(h)
};

/// One pass over memory for dropout, residual sum and norm; post-norm stacks use `norm` alone,
/// pre-norm stacks both. x, sub: [rows, width] of one dtype.
AddNorm add_norm(const Tensor& x, const Tensor& sub, const DropoutSpec& spec, const Tensor& gamma,
                 const Tensor& beta, float eps);
/// x + dropout(sub).
Tensor dropout_add(const Tensor& x, const Tensor& sub, const DropoutSpec& spec);

}  // namespace heddle
