// A batch of sentence pairs as the model takes it: rows end to end, without padding.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "heddle/data/token_cache.h"
#include "heddle/tensor/segments.h"

namespace heddle {

struct TranslationIds {
  int32_t decoder_start = 2;  ///< first input of the decoder
  int32_t eos = 3;            ///< ends source and target
};

/// Pairs laid end to end; s and t are the numbers of source and target rows.
struct TranslationBatch {
  std::vector<int32_t> source;      ///< [s] ids, then eos, of each pair
  Segments source_segments;         ///< one segment a pair
  std::vector<int32_t> target_in;   ///< [t] decoder_start, then ids
  std::vector<int32_t> target_out;  ///< [t] ids, then eos: what target_in's row is to predict
  Segments target_segments;
  std::vector<int64_t> samples;  ///< [pairs] indices in the corpus
  // Counters of randomness (dropout): they name a row whatever batch it is in.
  std::vector<uint32_t> source_sample;    ///< [s] index of the pair in the corpus, lower 32 bits
  std::vector<uint32_t> source_position;  ///< [s] position of the row in its sentence, from 0
  std::vector<uint32_t> target_sample;    ///< [t]
  std::vector<uint32_t> target_position;  ///< [t]
  int64_t target_tokens = 0;              ///< t: tokens that the loss is over, eos included

  int64_t pairs() const { return static_cast<int64_t>(samples.size()); }
};

/// The batch of these pairs, in this order, `passes` (1 or 2) times over; a second pass counts as
/// other samples, so that dropout differs. Errors: internal if an index is not in the corpus.
TranslationBatch make_translation_batch(const TokenizedCorpus& corpus,
                                        std::span<const int64_t> pairs,
                                        const TranslationIds& special, int64_t passes = 1);

}  // namespace heddle
