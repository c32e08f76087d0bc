// The classes of texts, or of their words, by a model with a head for them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "heddle/infer/loading/text_model.h"

namespace heddle {

/// A text, or a pair of them.
struct TextToClassify {
  std::string text;
  std::optional<std::string> second = {};
};

/// What makes probabilities of a model's logits.
enum class ClassScale : uint8_t {
  softmax,  ///< one class a text
  sigmoid,  ///< each class for itself: of one label, or multi_label_classification
  none      ///< regression: the logits themselves
};
/// As problem_type of the config says.
ClassScale class_scale(const Model& model);

/// For each text the probabilities of model().labels(), in their order, by
/// class_scale(). `cut` counts the texts that were cut to fit.
/// Errors: data if the model has no head for classes of sequences, or gives what is not finite.
std::vector<std::vector<double>> classify(const LoadedModel& model,
                                          std::span<const TextToClassify> texts,
                                          const Precision& precision, int64_t& cut);

/// The likeliest class of a word.
struct WordClass {
  int32_t label = -1;      ///< in model().labels(); -1: the word gives no token, or was cut off
  double probability = 0;  ///< softmax over the labels
};

/// For each text, whose words were split before, the class of each word: that of its first token,
/// as taggers are trained. `cut` counts the texts that were cut to fit.
/// Errors: data if the model has no head for classes of tokens, or gives what is not finite.
std::vector<std::vector<WordClass>> classify_words(const LoadedModel& model,
                                                   std::span<const std::vector<std::string>> texts,
                                                   const Precision& precision, int64_t& cut);

}  // namespace heddle
