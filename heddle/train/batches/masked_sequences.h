// Documents cut into sequences, and the tokens of each that are hidden.
#pragma once

#include <cstdint>
#include <vector>

#include "heddle/text/tokenizer.h"

namespace heddle::train {

using Chunks = std::vector<std::vector<int32_t>>;

/// Documents in chunks of at most `most` tokens.
Chunks chunks_of(const std::vector<std::vector<int32_t>>& documents, int64_t most);
/// All of them with -1 behind each: what tells one set of sequences from another.
std::vector<int32_t> joined(const Chunks& chunks);

/// The epoch whose masked tokens held-out text has, each time.
inline constexpr int64_t kHeldOutEpoch = -1;

struct HidingOptions {
  double share = 0.15;  ///< of the tokens that are predicted
  uint64_t seed = 1;
  int64_t epoch = kHeldOutEpoch;
};

/// Hides tokens of a sequence with its special ids, see mask_tokens(); which ones is a pure
/// function of the options and the number of the sequence. returns: what is to be predicted, -1:
/// nothing
std::vector<int32_t> mask_sequence(const Tokenizer& tokenizer, std::vector<int32_t>& ids,
                                   int64_t sequence, const HidingOptions& options);

}  // namespace heddle::train
