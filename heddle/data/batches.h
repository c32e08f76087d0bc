// Batches by a budget of tokens: which pairs of a corpus make up each batch of an epoch, and a
// batch as the model takes it: rows end to end, without padding.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "heddle/data/token_cache.h"
#include "heddle/tensor/segments.h"

namespace heddle {

/// Tokens of each pair, without the end token (TokenizedCorpus::source_lengths()). Counts here add
/// 1 a sentence for it: what is counted is rows of tensors. There is no padding to count.
struct PairLengths {
  std::span<const int32_t> source, target;
};

struct BatchOptions {
  /// A batch holds at most this many source rows, and at most as many target rows.
  int64_t batch_tokens = 4096;
  int64_t max_sentences = 0;  ///< at most this many pairs a batch; 0: no limit
  /// Pairs next to each other in the corpus that are shuffled together, the whole corpus where it
  /// is no larger: what must fit into memory at once for reading to be fast.
  int64_t block_size = int64_t{1} << 24;
  /// Pairs that are sorted by length together, after shuffling; 0: the whole block. Fewer mix
  /// lengths within a batch more; each sort leaves one batch that may be smaller.
  int64_t sort_pool = 0;
  bool shuffle = true;  ///< false: sorted by length, the same each epoch (validation)
  uint64_t seed = 0;
};

/// The batches of an epoch: each pair is in exactly one.
class BatchPlan {
 public:
  BatchPlan() : offsets_{0} {}
  int64_t size() const { return static_cast<int64_t>(offsets_.size()) - 1; }
  /// Places in the corpus of the pairs of batch i, by length.
  std::span<const int64_t> batch(int64_t i) const {
    const auto at = static_cast<size_t>(i);
    return std::span(pairs_).subspan(static_cast<size_t>(offsets_[at]),
                                     static_cast<size_t>(offsets_[at + 1] - offsets_[at]));
  }
  int64_t pairs() const { return static_cast<int64_t>(pairs_.size()); }
  void add(std::span<const int64_t> batch);
  friend bool operator==(const BatchPlan&, const BatchPlan&) = default;

 private:
  std::vector<int64_t> pairs_, offsets_;
};

/// The batches of an epoch, a pure function of its arguments: what resumes needs only the epoch and
/// the number of the batch. The corpus is cut into blocks (from a place that differs by epoch), the
/// blocks come in random order; inside, pairs are shuffled, sorted by (target, source) length so
/// that equal ones stay in random order, and cut into as few batches as the budget allows, made as
/// equal in size as they can be; the batches of a block are shuffled.
/// Time: linear, 3 s for 10 million pairs (one core, 2026-11); 24 bytes a pair beside the plan.
/// Errors: usage if an option is out of range, or a pair alone is beyond the budget (says which).
BatchPlan plan_epoch(const PairLengths& lengths, const BatchOptions& options, int64_t epoch);

/// Splits a batch into at most `shards` micro-batches of nearly equal numbers of tokens, none of
/// them empty, a pure function of its arguments: what gradients are accumulated over. The longest
/// pair goes first, each to the lightest shard (Graham 1969); a shard keeps the batch's order.
/// Errors: usage if shards < 1.
std::vector<std::vector<int64_t>> split_batch(const PairLengths& lengths,
                                              std::span<const int64_t> batch, int64_t shards);

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
