// Cross entropy, fused with the output projection.
#pragma once

#include <span>

#include "heddle/autograd/tape.h"

namespace heddle {

struct CrossEntropyOptions {
  float smoothing = 0;  ///< s: loss = -(1 - s) log p[target] - s / V sum_j log p[j]
  /// a > 0: the second half of the rows is another pass over the tokens of the first, and the loss
  /// of each row grows by a / 4 (KL(p || q) + KL(q || p)).    Source: R-Drop (Liang et al. 2021).
  float divergence = 0;
  /// The gradient of the loss is multiplied by this when it is computed (1 / tokens of the batch),
  /// so that backward() takes seed 1.
  float grad_scale = 1;
};

/// The loss of a batch.
struct CrossEntropy {
  Tensor loss;            ///< [1] f32: grad_scale * the sum over rows; backward() starts here
  double total = 0;       ///< sum of the smoothed losses, nats
  double nll = 0;         ///< sum of -log p[target], nats
  int64_t predicted = 0;  ///< rows that count
};

/// Cross entropy of logits x wᵀ + bias against targets. The [rows, vocab] logits exist only for
/// a chunk of rows at a time, and their gradient is formed in the same pass.
/// x: [rows, width], w: [vocab, width] of one dtype, bias: [vocab] f32 or undefined,
/// targets: [rows], negative ones do not count
/// Errors: data if a target is not below vocab.    Source: Szegedy et al. 2016 (smoothing).
CrossEntropy linear_cross_entropy(const Tensor& x, const Tensor& w, const Tensor& bias,
                                  std::span<const int32_t> targets,
                                  const CrossEntropyOptions& options);
/// Cross entropy of given logits: [rows, vocab].
CrossEntropy cross_entropy(const Tensor& logits, std::span<const int32_t> targets,
                           const CrossEntropyOptions& options);

/// Cross entropy of given logits against shares of the classes: -sum_j t[j] log p[j] a row.
/// logits, targets: [rows, classes], targets f32, each row's sum 1. `nll` is `total`.
CrossEntropy soft_cross_entropy(const Tensor& logits, const Tensor& targets, float grad_scale = 1);

/// Squared distance: the sum over all elements of (x - target)^2; `total` is that, `nll` too.
/// x, target: [rows, width], target f32
CrossEntropy squared_error(const Tensor& x, const Tensor& target, float grad_scale = 1);

}  // namespace heddle
