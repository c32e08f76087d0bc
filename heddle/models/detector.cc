// How the logits of a query are read.
#include "heddle/models/detector.h"

#include <algorithm>
#include <cmath>

#include "heddle/base/log_sum_exp.h"

namespace heddle {

SeenClass likeliest_class(const ObjectPredictions& seen, int64_t row) {
  const int64_t classes = seen.logits.size(1);
  const float* const logits = seen.logits.data<float>() + row * classes;
  const auto best = std::max_element(logits, logits + seen.labels());
  const auto label = static_cast<int32_t>(best - logits);
  if (seen.has_sigmoids) {
    const bool is_broken = std::any_of(logits, logits + classes, [](float x) { return x != x; });
    const double x = is_broken ? std::nan("") : static_cast<double>(*best);
    return {label, 1 / (1 + std::exp(-x))};
  }
  return {label, std::exp(*best - log_sum_exp({logits, static_cast<size_t>(classes)}))};
}

}  // namespace heddle
