// The formulas of the schedules.
#include "heddle/train/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "heddle/base/error.h"

namespace heddle::train {

double learning_rate(const ScheduleOptions& o, int64_t update) {
  const auto t = static_cast<double>(std::max<int64_t>(1, update));
  const auto warmup = static_cast<double>(std::max<int64_t>(1, o.warmup));
  if (o.kind == "noam") {
    const double width = static_cast<double>(o.d_model);
    return o.learning_rate * std::pow(width, -0.5) *
           std::min(std::pow(t, -0.5), t * std::pow(warmup, -1.5));
  }
  if (o.kind == "inverse_sqrt") {
    return o.learning_rate * std::min(t / warmup, std::sqrt(warmup / t));
  }
  if (o.warmup > 0 && t < warmup) return o.learning_rate * t / warmup;
  if (o.kind == "constant") return o.learning_rate;
  const double whole = std::max(1.0, static_cast<double>(o.max_updates - o.warmup));
  const double done = std::clamp((t - static_cast<double>(o.warmup)) / whole, 0.0, 1.0);
  check(o.kind == "cosine" || o.kind == "linear", ErrorKind::usage,
        "there is no schedule '{}'; choose noam, inverse_sqrt, cosine, linear or constant", o.kind);
  const double share =
      o.kind == "cosine" ? 0.5 * (1 + std::cos(std::numbers::pi * done)) : 1 - done;
  return o.min_learning_rate + (o.learning_rate - o.min_learning_rate) * share;
}

}  // namespace heddle::train
