// Documents cut into sequences, and the words of each that are hidden.
#pragma once

#include <cstdint>
#include <vector>

#include "heddle/text/tokenizer.h"

namespace heddle::train {

using Chunks = std::vector<std::vector<int32_t>>;

/// Documents in pieces of at most `most` words.
Chunks chunks_of(const std::vector<std::vector<int32_t>>& documents, int64_t most);
/// All of them with -1 behind each: what tells one set of sequences from another.
std::vector<int32_t> joined(const Chunks& chunks);

/// The epoch whose hidden words held-out text has, each time.
inline constexpr int64_t kHeldOutEpoch = -1;

struct HidingOptions {
  double share = 0.15;  ///< of the words that are predicted
  uint64_t seed = 1;
  int64_t epoch = kHeldOutEpoch;
};

/// Hides words of a sequence with its special ids, see mask_words(); which ones is a pure function
/// of the options and the number of the sequence. returns: what is to be predicted, -1: nothing
std::vector<int32_t> hide_words(const Tokenizer& tokenizer, std::vector<int32_t>& ids,
                                int64_t sequence, const HidingOptions& options);

}  // namespace heddle::train
