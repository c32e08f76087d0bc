// Tokens for the masks of a text, by a model of masked tokens.
#pragma once

#include <string>
#include <vector>

#include "heddle/infer/loading/text_model.h"

namespace heddle {

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
