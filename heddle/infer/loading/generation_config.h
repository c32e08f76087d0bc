// generation_config.json of a model's folder: special ids, and how its makers would have it
// decoded.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "heddle/infer/decoding/beam.h"
#include "heddle/infer/decoding/sample.h"
#include "heddle/infer/decoding/token_rules.h"

namespace heddle {

/// Hugging Face's keys. What is absent has the value that changes nothing.
struct GenerationConfig {
  std::vector<int32_t> eos = {};  ///< eos_token_id, one or a list: each ends a sequence
  std::optional<int32_t> bos = {}, decoder_start = {}, forced_eos = {};
  std::vector<int32_t> suppressed = {};  ///< suppress_tokens, and bad_words_ids of one token
  std::optional<int64_t> max_new_tokens = {};
  std::optional<int64_t> max_length = {};  ///< of tokens that were given and new ones, the end too
  int64_t min_length = 0;                  ///< of the same
  int64_t beam = 1;                        ///< num_beams
  double length_penalty = 1;
  EarlyStopping early_stopping = EarlyStopping::no;
  TokenRules rules = {};   ///< repetition_penalty, no_repeat_ngram_size, min_new_tokens
  Sampling sampling = {};  ///< temperature, top_k, top_p, min_p, for who samples; 0 and 1: no limit
};

/// Reads generation_config.json of a folder, and the special ids that it lacks from config.json;
/// where there is none, all from config.json, as older checkpoints have it; both may be missing.
/// Errors: data, naming file and key, for a broken file or a value of a wrong type or range.
GenerationConfig read_generation_config(const std::string& folder);

}  // namespace heddle
