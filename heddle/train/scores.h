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
  /// Half the interval that holds 95 % of what resampled held-out data give; 0: not known.
  double half_width = 0;
  bool operator==(const Metric& other) const {  // half_width follows from the data
    return name == other.name && value == other.value;
  }
};

/// Behind the name of a metric in log.jsonl: its half_width.
inline constexpr const char* kHalfWidth = "_half_width";

/// "41.20 ± 0.81", "0.9130"
inline std::string value_text(const Metric& metric) {
  const int digits = metric.name == "bleu" ? 2 : 4;
  if (metric.half_width == 0) return fmt::format("{:.{}f}", metric.value, digits);
  return fmt::format("{:.{}f} ± {:.{}f}", metric.value, digits, metric.half_width, digits);
}
/// "BLEU 41.20 ± 0.81", "accuracy 0.9130": as progress lines have it.
inline std::string to_text(const Metric& metric) {
  return fmt::format("{} {}", metric.name == "bleu" ? "BLEU" : metric.name, value_text(metric));
}

/// How good a model is on held-out text.
struct ValidationScore {
  double loss = 0;  ///< nats per predicted token or label, without smoothing
  std::vector<Metric> metrics = {};

  /// The metric of that name; null if there is none.
  const Metric* find(std::string_view name) const {
    for (const Metric& m : metrics) {
      if (m.name == name) return &m;
    }
    return nullptr;
  }
  /// Its value; -1 if there is none.
  double metric(std::string_view name) const {
    const Metric* const found = find(name);
    return found == nullptr ? -1 : found->value;
  }
  /// What gets smaller as the model gets better: the loss, or minus a metric.
  double cost(std::string_view by) const { return by == "loss" ? loss : -metric(by); }
  bool operator==(const ValidationScore&) const = default;
};

}  // namespace heddle::train
