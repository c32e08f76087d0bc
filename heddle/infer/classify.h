// The classes of texts, by a model with a head for them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "heddle/infer/text_model.h"

namespace heddle {

/// A text, or a pair of them.
struct TextToClassify {
  std::string text;
  std::optional<std::string> second = {};
};

/// For each text the probabilities of model().labels(), in their order: softmax of the logits; of
/// one label, or where problem_type is multi_label_classification, the sigmoid of each; where it is
/// regression, the logits themselves. `cut` counts the texts that were cut to fit.
/// Errors: data if the model has no head for classes of sequences, or gives what is not finite.
std::vector<std::vector<double>> classify(const TextModel& model,
                                          std::span<const TextToClassify> texts,
                                          const Precision& precision, int64_t& cut);

}  // namespace heddle
