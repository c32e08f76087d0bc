// The learning rate as a function of the update.
#pragma once

#include <cstdint>
#include <string>

namespace heddle::train {

struct ScheduleOptions {
  /// "noam": learning_rate * d_model^-0.5 * min(t^-0.5, t * warmup^-1.5) (Vaswani et al., eq. 3);
  /// "inverse_sqrt": learning_rate * min(t / warmup, sqrt(warmup / t));
  /// "cosine", "linear": a linear warm-up, then down to min_learning_rate at max_updates;
  /// "constant": a linear warm-up, then learning_rate.
  std::string kind = "inverse_sqrt";
  double learning_rate = 1;
  double min_learning_rate = 0;
  int64_t warmup = 4000;  ///< updates
  int64_t max_updates = 0;
  int64_t d_model = 512;
};

/// The rate of update t = 1, 2, ...
double learning_rate(const ScheduleOptions& options, int64_t update);

}  // namespace heddle::train
