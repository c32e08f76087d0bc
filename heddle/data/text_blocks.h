// Running text as ids, cut into sequences of equal length for language models.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace heddle {

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
