// Batches by a budget of tokens: which pairs of a corpus make up each batch of an epoch, and a
// batch as the model takes it: rows end to end, without padding.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>
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
  /// A batch holds at most this many source rows, and at most as many target rows; where marks
  /// take more than one a sentence it has these beside.
  int64_t batch_tokens = 4096;
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
  std::vector<int64_t> pairs_, offsets_ = {0};
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

/// Ids around pairs that are given without any.
struct PairMarks {
  std::vector<int32_t> source_start = {};  ///< before each source: a language
  std::vector<int32_t> source_end = {};    ///< behind it
  std::vector<int32_t> target_start = {};  ///< what the decoder is given before each target; the
                                           ///< first id, and others that are not predicted
  int32_t target_end = -1;                 ///< behind each target

  /// Rows beside those of a sentence's ids.
  int64_t target_rows() const { return static_cast<int64_t>(target_start.size()); }
  int64_t source_rows() const {
    return static_cast<int64_t>(source_start.size() + source_end.size());
  }
  friend bool operator==(const PairMarks&, const PairMarks&) = default;
};

/// Pairs laid end to end; s and t are the numbers of source and target rows.
struct TranslationBatch {
  std::vector<int32_t> source;      ///< [s] ids between the marks, of each pair
  Segments source_segments;         ///< one segment a pair
  std::vector<int32_t> target_in;   ///< [t] PairMarks::target_start, then ids
  std::vector<int32_t> target_out;  ///< [t] ids, then the end: what target_in's row is to predict;
                                    ///< -1, which no loss counts, in front of a given one
  Segments target_segments;
  std::vector<int64_t> samples;  ///< [pairs] indices in the corpus
  // Counters of randomness (dropout): they name a row whatever batch it is in.
  std::vector<uint32_t> source_sample;    ///< [s] index of the pair in the corpus, lower 32 bits
  std::vector<uint32_t> source_position;  ///< [s] position of the row in its sentence, from 0
  std::vector<uint32_t> target_sample;    ///< [t]
  std::vector<uint32_t> target_position;  ///< [t]
  int64_t target_tokens = 0;              ///< that the loss is over, ends included

  int64_t pairs() const { return static_cast<int64_t>(samples.size()); }
};

/// Lays pairs end to end.
class PairPacker {
 public:
  /// Errors: internal for marks without a first id or an end of targets.
  explicit PairPacker(PairMarks marks);

  /// name: what the rows count as for randomness.
  void add(int64_t sample, uint32_t name, std::span<const int32_t> source,
           std::span<const int32_t> target);
  /// All that was added.
  TranslationBatch take();

 private:
  PairMarks marks_;
  TranslationBatch batch_;
  std::vector<int64_t> source_rows_, target_rows_;
};

/// Other ids of a sentence, of the pair of this number; called from several threads at once.
using Resegment = std::function<std::vector<int32_t>(std::vector<int32_t> ids, int64_t pair)>;

struct TranslationBatchOptions {
  int64_t passes = 1;                  ///< 1 or 2: the pairs so many times over
  Resegment source = {}, target = {};  ///< of each side; empty: the ids of the corpus
};

/// The batch of these pairs, in this order; a second pass has the same ids, and counts as other
/// samples, so that dropout differs. Errors: internal if an index is not in the corpus.
TranslationBatch make_translation_batch(const TokenizedCorpus& corpus,
                                        std::span<const int64_t> pairs, const PairMarks& marks,
                                        const TranslationBatchOptions& options = {});

/// In which order the sequences of an epoch come from a text.
enum class BlockOrder : uint8_t {
  random,       ///< they begin anywhere
  consecutive,  ///< end to end, in random order
  streams  ///< the text is cut into as many parts as a batch has sequences, which are read side
           ///< by side: sequence i of a batch goes on where sequence i of the one before ended
};
/// By its name: "random", ... Errors: usage for any other.
BlockOrder block_order(const std::string& name);

/// Which sequences make up an epoch over a text of so many tokens.
struct BlockOptions {
  int64_t block = 64;  ///< tokens that a sequence predicts
  int64_t batch = 16;  ///< sequences of a batch
  BlockOrder order = BlockOrder::random;
  uint64_t seed = 0;
};

/// The sequences of each epoch, a pure function of seed, epoch and the number of tokens: sample
/// `i` of epoch `e` begins at token begin(e, i) and has options.block + 1 tokens, of which each
/// predicts the next. Random ones are drawn on their own; others lie end to end from a place that
/// differs by epoch. Of streams, sample i is sequence i % batch of batch i / batch.
/// Sources: random: Karpathy's nanoGPT, get_batch(); streams: Dai et al. 2019, "Transformer-XL".
class BlockPlan {
 public:
  /// Errors: data if the text is shorter than a sequence, or than one for each stream, naming both
  /// lengths.
  BlockPlan(int64_t tokens, const BlockOptions& options);

  /// Batches of an epoch: as many as cover the tokens of the text once, at least 1.
  int64_t batches() const { return batches_; }
  /// Numbers of the samples of a batch.
  std::vector<int64_t> batch(int64_t i) const;
  int64_t begin(int64_t epoch, int64_t sample);

 private:
  void place(int64_t epoch);

  int64_t tokens_;
  BlockOptions options_;
  int64_t samples_, batches_;
  int64_t placed_epoch_ = -1;
  std::vector<int64_t> begins_;  // of samples that lie end to end, in their order
};

/// Samples that are what they are (sentences with labels), in another random order each epoch.
class ShuffledPlan {
 public:
  ShuffledPlan(int64_t samples, int64_t batch, uint64_t seed)
      : samples_(samples), batch_(batch), seed_(seed) {}

  int64_t batches() const { return (samples_ + batch_ - 1) / batch_; }
  /// Numbers of the samples of a batch of an epoch.
  std::vector<int64_t> batch(int64_t epoch, int64_t i);

 private:
  int64_t samples_, batch_;
  uint64_t seed_;
  int64_t epoch_ = -1;
  std::vector<int64_t> order_;
};

}  // namespace heddle
