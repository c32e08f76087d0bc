// Kernel of the loss.
#pragma once

#include <cmath>
#include <vector>

#include "heddle/base/error.h"
#include "heddle/kernels/family.h"

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

inline Work work_of(const CrossEntropyArgs& a) { return work_of(a.logits, a.dlogits); }

namespace definition {

inline void cross_entropy(const CrossEntropyArgs& a) {
  const int64_t rows = a.logits.rows, vocab = a.logits.width;
  const auto log_p = [&](int64_t r) {
    std::vector<double> y(vocab);
    double largest = element(a.logits, r, 0), sum = 0;
    for (int64_t c = 0; c < vocab; ++c) largest = std::max(largest, element(a.logits, r, c));
    for (int64_t c = 0; c < vocab; ++c) sum += std::exp(element(a.logits, r, c) - largest);
    for (int64_t c = 0; c < vocab; ++c) {
      y[c] = element(a.logits, r, c) - largest - std::log(sum);
    }
    return y;
  };
  std::vector<std::vector<double>> of_rows;  // all before the first gradient: it may alias logits
  for (int64_t r = 0; r < rows; ++r) of_rows.push_back(log_p(r));
  for (int64_t r = 0; r < rows; ++r) {
    const std::vector<double>&p = of_rows[r], &q = of_rows[(r + rows / 2) % rows];
    const int32_t target = a.targets[r];
    check(target < vocab, ErrorKind::data,
          "cross_entropy: target {} of row {}; there are {} classes", target, r, vocab);
    const bool counts = target >= 0;
    double uniform = 0, from_q = 0, to_q = 0;  // KL(p || q), KL(q || p)
    for (int64_t c = 0; c < vocab; ++c) {
      if (a.smoothing != 0) uniform -= p[c] / static_cast<double>(vocab);
      if (a.divergence > 0) from_q += std::exp(p[c]) * (p[c] - q[c]);
      if (a.divergence > 0) to_q += std::exp(q[c]) * (q[c] - p[c]);
    }
    const double nll = counts ? -p[target] : 0;
    a.loss[r] = counts ? static_cast<float>((1 - a.smoothing) * nll + a.smoothing * uniform +
                                            a.divergence / 4 * (from_q + to_q))
                       : 0;
    if (a.nll) a.nll[r] = static_cast<float>(nll);
    if (!a.dlogits.data) continue;
    for (int64_t c = 0; c < vocab; ++c) {
      double d = std::exp(p[c]) - a.smoothing / static_cast<double>(vocab) -
                 (c == target ? 1 - a.smoothing : 0);
      if (a.divergence > 0) {
        d += a.divergence / 2 *
             (std::exp(p[c]) * (p[c] - q[c] - from_q) + std::exp(p[c]) - std::exp(q[c]));
      }
      set_element(a.dlogits, r, c, counts ? d * a.grad_scale : 0);
    }
  }
}

}  // namespace definition

struct LossKernels {
  void (*cross_entropy)(const CrossEntropyArgs&);

  static LossKernels of_cpu();
  static void list(const auto& visit) { HEDDLE_LIST_KERNEL(LossKernels, cross_entropy); }
};

}  // namespace heddle
