// Plain definitions of fused ops, composed of primitive ones: what their cases are checked against,
// values and gradients.
#pragma once

#include "heddle/ops/attention.h"
#include "heddle/ops/elementwise.h"
#include "heddle/ops/loss.h"
#include "heddle/ops/matmul.h"
#include "heddle/ops/norm.h"
#include "heddle/ops/relative_attention.h"

namespace heddle {

/// activation() without dropout, then dropout.
Tensor activation_reference(Activation kind, const Tensor& x, const DropoutSpec& spec = {});
/// The plain definition: gather, scale, gather, add, dropout.
Tensor embedding_reference(const Tensor& table, std::span<const int32_t> ids, float scale,
                           const Tensor& positions, std::span<const int32_t> position_ids,
                           const DropoutSpec& spec);
/// The plain definition: transpose, matmul, add_bias, activation.
Tensor linear_reference(const Tensor& x, const Tensor& w, const Tensor& bias,
                        Activation kind = Activation::none);
/// The plain definition: add, dropout, layer_norm.
AddNorm add_norm_reference(const Tensor& x, const Tensor& sub, const DropoutSpec& spec,
                           const Tensor& gamma, const Tensor& beta, float eps);
/// The plain definition, segment by segment and head by head, without dropout on the weights.
Tensor attention_reference(const Tensor& q, const Tensor& k, const Tensor& v,
                           const Segments& queries, const Segments& keys,
                           const AttentionOptions& options);
/// The plain definition, segment by segment and head by head, without dropout on the weights.
Tensor relative_attention_reference(const RelativeInputs& x, const RelativeRows& rows,
                                    const RelativeOptions& options);
/// The plain definition: linear, then cross_entropy.
CrossEntropy linear_cross_entropy_reference(const Tensor& x, const Tensor& w, const Tensor& bias,
                                            std::span<const int32_t> targets,
                                            const CrossEntropyOptions& options);

}  // namespace heddle
