// Which source words a translation looked at.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "heddle/infer/loading/loaded_model.h"

namespace heddle {

/// Cross-attention weights of one decoder layer, averaged over its heads, with the target given;
/// see cross_attention_maps(). layer -1: aligning_layer(). Errors: shape if there is no such layer.
Tensor cross_attention_map(const EncoderDecoder& model, std::span<const int32_t> source,
                           std::span<const int32_t> target, int64_t layer = -1,
                           Precision precision = {});

/// A word of a translation and the source word that it attended to most.
struct WordLink {
  std::string target;
  std::string source;         ///< "" if the source has no word
  int64_t source_index = -1;  ///< its place among the words of the source
  double weight = 0;  ///< attention to that word, averaged over the target word's tokens, 0 to 1
};

/// For each word of the translation, punctuation left out, the source word with the most attention.
/// Tokens make a word up to the next space or punctuation; the weights of a source word's tokens
/// are summed. Needs the tokenizer.
std::vector<WordLink> word_attention(const LoadedModel& model, std::span<const int32_t> source,
                                     std::span<const int32_t> target, Precision precision = {});

}  // namespace heddle
