// Rules about what may come next, given the tokens so far.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace heddle {

struct TokenRules {
  int64_t no_repeat_ngram = 0;    ///< no n tokens in a row come twice; 0: they may
  double repetition_penalty = 1;  ///< see penalise_repeats()
  int64_t min_length = 0;         ///< tokens, without the end, before which the end must not come
  int64_t min_total_length = 0;   ///< the same, with the tokens that were given
  std::vector<std::vector<int32_t>> banned_ngrams = {};  ///< must not come

  bool any() const {
    return no_repeat_ngram > 0 || repetition_penalty != 1 || min_length > 0 ||
           min_total_length > 0 || !banned_ngrams.empty();
  }
};

/// Adds to `banned` each id that would complete an n-gram which `ids` holds already.
/// Source: Paulus et al. 2017, section 2.5.
void ban_repeats(std::span<const int32_t> ids, int64_t n, std::vector<int32_t>& banned);

/// Adds to `banned` the last token of `row` where `ids` end in the tokens before it. row: two
/// tokens or more
void ban_last_of(std::span<const int32_t> row, std::span<const int32_t> ids,
                 std::vector<int32_t>& banned);

/// Divides the logits of the tokens so far by the penalty where they are positive, and multiplies
/// them by it where they are negative, once a token however often it came.
/// Source: Keskar et al. 2019, section 4.1, with the signs of Hugging Face.
void penalise_repeats(std::span<float> logits, std::span<const int32_t> ids, double penalty);

}  // namespace heddle
