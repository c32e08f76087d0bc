// How good a model is on held-out text.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace heddle::train {

/// A score by its name, the larger the better: "bleu", "accuracy".
struct Metric {
  std::string name;
  double value = 0;
  bool operator==(const Metric&) const = default;
};

struct ValidationScore {
  double loss = 0;  ///< nats per predicted token or label, without smoothing
  std::vector<Metric> metrics = {};

  /// The metric of that name; -1 if there is none.
  double metric(std::string_view name) const;
  /// True if this is better than `other` by "loss" or a metric; the loss decides between equals.
  bool is_better(const ValidationScore& other, std::string_view by) const;
  /// What gets smaller as the model gets better: the loss, or minus a metric.
  double cost(std::string_view by) const;
  bool operator==(const ValidationScore&) const = default;
};

/// "BLEU 41.20", "accuracy 0.913": as progress lines have it.
std::string to_text(const Metric& metric);

}  // namespace heddle::train
