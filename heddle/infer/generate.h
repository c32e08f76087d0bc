// Continuing sequences word by word over cached keys and values: ids in, ids out.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "heddle/models/model.h"

namespace heddle {

struct GenerateOptions {
  int64_t max_new_tokens = 64;           ///< words added to each prompt at most
  std::optional<int32_t> eos = {};       ///< ends a sequence; absent: nothing does
  std::vector<int32_t> suppressed = {};  ///< ids that never come
  Precision precision = {};
};

/// The likeliest continuation, a word at a time, of each prompt: the new words, without eos. All
/// prompts are read in one pass, then a step takes one row for each sequence that goes on. What a
/// sequence gets depends neither on its neighbours nor on the threads, bit for bit. A sequence ends
/// at eos, at max_new_tokens or at the model's longest sequence.
/// Errors: data if a prompt is empty, longer than the model takes, or has an id that is not in the
/// vocabulary, or if the weights are not finite.
std::vector<std::vector<int32_t>> generate_ids(const LanguageModel& model,
                                               std::span<const std::vector<int32_t>> prompts,
                                               const GenerateOptions& options);

}  // namespace heddle
