// Running text as ids, cut into sequences of equal length for language models.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace heddle {

/// Which sequences make up an epoch over a text of so many words.
struct BlockOptions {
  int64_t block = 64;     ///< words that a sequence predicts
  int64_t batch = 16;     ///< sequences of a batch
  bool is_random = true;  ///< they begin anywhere; else an epoch goes once through the text
  uint64_t seed = 0;
};

/// The sequences of each epoch, a pure function of seed, epoch and the number of words: sample
/// `i` of epoch `e` begins at word begin(e, i) and has options.block + 1 words, of which each
/// predicts the next. Random ones are drawn on their own; consecutive ones lie end to end from a
/// place that differs by epoch, and come in random order.
/// Source of the random form: Karpathy's nanoGPT, get_batch().
class BlockPlan {
 public:
  /// Errors: data if the text is shorter than a sequence, naming both lengths.
  BlockPlan(int64_t words, const BlockOptions& options);

  /// Batches of an epoch: as many as cover the words of the text once, at least 1.
  int64_t batches() const { return batches_; }
  /// Numbers of the samples of a batch.
  std::vector<int64_t> batch(int64_t i) const;
  int64_t begin(int64_t epoch, int64_t sample);

 private:
  void shuffle(int64_t epoch);

  int64_t words_;
  BlockOptions options_;
  int64_t samples_, batches_;
  int64_t shuffled_epoch_ = -1;
  std::vector<int64_t> begins_;  // of consecutive samples, in their order
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
