// Probabilities of a few logits, in double.
#pragma once

#include <algorithm>
#include <cmath>
#include <span>

namespace heddle {

/// log sum exp(x); log p of logit x is x - it. x: not empty. Of large numbers too; NaN where one is
/// NaN or +inf, or all are -inf.
inline double log_sum_exp(std::span<const float> logits) {
  const double most = *std::ranges::max_element(logits);
  double sum = 0;
  for (const float x : logits) sum += std::exp(static_cast<double>(x) - most);
  return most + std::log(sum);
}

}  // namespace heddle
