// What a batch and a validation give: sums of losses, and scores by which models are compared.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <vector>

namespace heddle::train {

/// Sums over tokens (or labels) that are predicted; divide by `predicted` for a mean.
struct LossSums {
  double loss = 0;  ///< with label smoothing, nats
  double nll = 0;   ///< without, nats
  int64_t predicted = 0;
  int64_t tokens = 0;  ///< rows that the model read for it, what speed is counted in
  LossSums& operator+=(const LossSums& o) {
    loss += o.loss;
    nll += o.nll;
    predicted += o.predicted;
    tokens += o.tokens;
    return *this;
  }
};

/// A score by its name, the larger the better: "bleu", "accuracy".
struct Metric {
  std::string name;
  double value = 0;
  bool operator==(const Metric&) const = default;
};

/// "BLEU 41.20", "accuracy 0.913": as progress lines have it.
inline std::string to_text(const Metric& metric) {
  if (metric.name == "bleu") return fmt::format("BLEU {:.2f}", metric.value);
  return fmt::format("{} {:.4f}", metric.name, metric.value);
}

/// How good a model is on held-out text.
struct ValidationScore {
  double loss = 0;  ///< nats per predicted token or label, without smoothing
  std::vector<Metric> metrics = {};

  /// The metric of that name; -1 if there is none.
  double metric(std::string_view name) const {
    for (const Metric& m : metrics) {
      if (m.name == name) return m.value;
    }
    return -1;
  }
  /// What gets smaller as the model gets better: the loss, or minus a metric.
  double cost(std::string_view by) const { return by == "loss" ? loss : -metric(by); }
  /// True if this is better than `other` by "loss" or a metric; the loss decides between equals.
  bool is_better(const ValidationScore& other, std::string_view by) const {
    return cost(by) != other.cost(by) ? cost(by) < other.cost(by) : loss < other.loss;
  }
  bool operator==(const ValidationScore&) const = default;
};

}  // namespace heddle::train
