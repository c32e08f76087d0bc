// What is asked of the engine: tokens to go on from, how, and who hears of it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "heddle/infer/decoding/beam.h"
#include "heddle/infer/decoding/sample.h"
#include "heddle/infer/decoding/token_rules.h"

namespace heddle {

struct Request {
  /// What is gone on from: a prompt, or what the decoder of an encoder-decoder begins with.
  std::vector<int32_t> tokens = {};
  std::vector<int32_t> source = {};  ///< what an encoder-decoder translates, with its end
  std::vector<int32_t> prefix = {};  ///< that the output begins with; its log p counts, but
  size_t free_prefix = 0;            ///< for so many tokens

  /// search.max_length: tokens and end of the output; search.goes_on hears of each token.
  BeamOptions search = {};
  std::optional<Sampling> sampling = {};  ///< search.n_best draws; the beam is 1
  TokenRules rules = {};  ///< they count `tokens` too, but not those of an encoder-decoder
  std::vector<int32_t> suppressed = {};    ///< ids that never come
  std::optional<int32_t> forced_eos = {};  ///< the last token that there is room for
  bool forced_eos_is_free = true;          ///< its log p is 0
  bool penalises_log_p = false;            ///< see NextTokensOptions
  bool scores = true;  ///< whether log p is wanted: greedy search is faster without
  /// Tokens that the model sees at once at most; 0: as many as it can. Where they are full a text
  /// that slides goes on from its last context / 2 tokens, which are read anew as a text of their
  /// own.
  int64_t context = 0;
  bool slides = false;

  /// Sees every step; DecodeStep::sentence is the id of the request.
  std::function<void(const DecodeStep&)> on_step = {};
  /// Gets BeamSearch::results() once the search is done.
  std::function<void(std::span<const Hypothesis>)> on_done = {};
};

/// Errors: usage, naming the flag, for options outside their ranges.
void check_search(const BeamOptions& search, const std::optional<Sampling>& sampling,
                  const TokenRules& rules);

}  // namespace heddle
