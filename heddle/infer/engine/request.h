// What is asked of the engine: tokens to go on from, how, and who hears of it.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "heddle/infer/search/search_config.h"

namespace heddle {

struct Request {
  /// What is gone on from: a prompt, or what the decoder of an encoder-decoder begins with.
  std::vector<int32_t> tokens = {};
  std::vector<int32_t> source = {};  ///< what an encoder-decoder translates, with its end
  std::vector<int32_t> prefix = {};  ///< that the output begins with; its log p counts, but
  size_t free_prefix = 0;            ///< for so many tokens

  /// But how long the output is, and what it begins with. Its rules count `tokens` too, but not
  /// those of an encoder-decoder.
  SearchConfig search = {};
  int64_t max_length = 1;  ///< tokens and end of the output
  LengthPenalty penalty = LengthPenalty::power;
  /// BeamOptions::goes_on
  std::function<bool(const Hypothesis&)> goes_on = {};
  bool forced_eos_is_free = true;  ///< the log p of search.forced_eos is 0
  bool penalises_log_p = false;    ///< see NextTokensOptions
  bool scores = true;              ///< whether log p is wanted: greedy search is faster without
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

}  // namespace heddle
