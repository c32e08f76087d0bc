// Cutting, and masks by a key of seed, epoch and sequence.
#include "heddle/train/batches/masked_sequences.h"

#include <algorithm>

#include "heddle/data/masking.h"

namespace heddle::train {

Chunks chunks_of(const std::vector<std::vector<int32_t>>& documents, int64_t most) {
  Chunks chunks;
  for (const std::vector<int32_t>& document : documents) {
    const auto n = static_cast<int64_t>(document.size());
    for (int64_t at = 0; at < n; at += most) {
      chunks.emplace_back(document.begin() + at, document.begin() + std::min(at + most, n));
    }
  }
  return chunks;
}

std::vector<int32_t> joined(const Chunks& chunks) {
  std::vector<int32_t> all;
  for (const auto& chunk : chunks) {
    all.insert(all.end(), chunk.begin(), chunk.end());
    all.push_back(-1);
  }
  return all;
}

std::vector<int32_t> mask_sequence(const Tokenizer& tokenizer, std::vector<int32_t>& ids,
                                   int64_t sequence, const HidingOptions& o) {
  static const uint64_t kMask = hash_name("train/masks");
  return mask_tokens(
      ids,
      {.share = o.share,
       .mask_id = tokenizer.mask_id(),
       .vocab_size = tokenizer.vocab_size(),
       .is_special = [&](int32_t id) { return tokenizer.is_special(id); }},
      make_key(o.seed, static_cast<uint64_t>(o.epoch), kMask, static_cast<uint64_t>(sequence)));
}

}  // namespace heddle::train
