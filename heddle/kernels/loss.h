// Kernel of the loss.
#pragma once

#include "heddle/kernels/work.h"

namespace heddle {

/// Cross entropy with label smoothing over rows of logits, in place: logits become the gradient
/// d loss / d logits * grad_scale (written to dlogits, which may be bf16 or alias logits).
/// Per row: loss = -(1 - s) log p[target] - s / V * sum_j log p[j]; nll = -log p[target].
/// With `divergence` a > 0 rows r and r + rows / 2 are two passes over one token, p and q, and the
/// loss of each grows by a / 4 (KL(p || q) + KL(q || p)) (R-Drop).
struct CrossEntropyArgs {
  Rows logits = {};                  ///< [rows, vocab] f32 or bf16
  Rows dlogits = {};                 ///< same shape; absent: no gradient
  const int32_t* targets = nullptr;  ///< [rows]; negative: the row is ignored (loss 0, gradient 0)
  float smoothing = 0;
  float divergence = 0;
  float grad_scale = 1;
  float* loss = nullptr;  ///< [rows]
  float* nll = nullptr;   ///< [rows]; may be null
};

inline Work work_of(const CrossEntropyArgs& args) {
  return {bytes_of(args.logits) + bytes_of(args.dlogits), 0};
}

struct LossKernels {
  void (*cross_entropy)(const CrossEntropyArgs&);

  /// visit.operator()<&pointer>(name) for each.
  template <class Visit>
  static void list(const Visit& visit) {
    visit.template operator()<&LossKernels::cross_entropy>("cross_entropy");
  }
};

namespace cpu {
LossKernels loss_kernels();
}

}  // namespace heddle
