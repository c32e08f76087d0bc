// What the heads of a model say of texts: the classes of texts or of their words, and tokens for
// the masks of a text.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "heddle/base/json/json.h"
#include "heddle/infer/image_batch.h"
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

/// What results call the classes of a model: its labels as distinct_names().
std::vector<std::string> class_names(const Model& model);

/// For each text the probabilities of model().labels(), in their order, by
/// class_scale(). `cut` counts the texts that were cut to fit.
/// Errors: data if the model has no head for classes of sequences, or gives what is not finite.
std::vector<std::vector<double>> classify(const LoadedModel& model,
                                          std::span<const TextToClassify> texts,
                                          const Precision& precision, int64_t& cut);

/// The same of fitted images (ImageProcessor::fit()); mirrored: by the mean of the logits of each
/// and of its mirror image. Errors: data if the model has no head for classes of images, takes none
/// of their size, or gives what is not finite.
std::vector<std::vector<double>> classify(const ImageReader& reader, std::span<const Image> images,
                                          const Precision& precision, bool mirrored = false);

/// One of them as JSON: {"label": the likeliest, "probabilities": {NAME: p, ..}}.
/// names: class_names()
Json class_json(const std::vector<std::string>& names, const std::vector<double>& probabilities);

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

/// A token for a mask.
struct Fill {
  int32_t id = 0;
  std::string token;       ///< alone, without the space before it
  double probability = 0;  ///< softmax over the vocabulary
  std::string text;        ///< the text with it; other masks stay, other special tokens do not
};

/// The `top` likeliest tokens of each mask of each text, likeliest first: [texts][masks][top].
/// Masks are written as the tokenizer spells them, or "[MASK]"; each is filled with the others in
/// place. Errors: usage if `top` is not 1 to the size of the vocabulary; data if the model has no
/// head for masked tokens or its tokenizer no mask, or a text has no mask or is longer than the
/// model takes.
std::vector<std::vector<std::vector<Fill>>> fill_masks(const LoadedModel& model,
                                                       std::span<const std::string> texts,
                                                       int64_t top, const Precision& precision);

}  // namespace heddle
