// Comparing scores.
#include "heddle/train/metrics/validation_score.h"

#include <fmt/format.h>

namespace heddle::train {

double ValidationScore::metric(std::string_view name) const {
  for (const Metric& m : metrics) {
    if (m.name == name) return m.value;
  }
  return -1;
}

bool ValidationScore::is_better(const ValidationScore& other, std::string_view by) const {
  if (by != "loss" && metric(by) != other.metric(by)) return metric(by) > other.metric(by);
  return loss < other.loss;
}

double ValidationScore::cost(std::string_view by) const {
  return by == "loss" ? loss : -metric(by);
}

std::string to_text(const Metric& metric) {
  if (metric.name == "bleu") return fmt::format("BLEU {:.2f}", metric.value);
  return fmt::format("{} {:.4f}", metric.name, metric.value);
}

}  // namespace heddle::train
