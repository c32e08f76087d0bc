// The sum of the gradients of shards, along a fixed binary tree.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "heddle/train/ranks/gradient_layout.h"

namespace heddle::train {

/// ((s0 + s1) + (s2 + s3)) + .., of shards that are computed one after the other. Of n shards it
/// holds log2(n) sets of gradients, beside the one that a backward pass adds to. What a shard has
/// no gradient for counts as zero. Buffers begin each shard with what they were before the batch;
/// their changes are summed. Of the last shard buckets can be taken one by one, as soon as their
/// gradients are final: each then has its sum.
class GradientTree {
 public:
  GradientTree(nn::Parameters& parameters, const GradientLayout& layout);

  /// A batch begins.
  void begin();
  /// Takes the gradients of the next shard out of the parameters.
  void take();
  /// The same of one bucket; all of a shard are taken before those of the next one. The bucket of
  /// buffers puts them back.
  void take(const GradientLayout::Bucket& bucket);
  /// Whether a gradient came for each of the parameters, of any shard.
  const std::vector<uint8_t>& came() const { return came_; }
  /// The sum, as `layout` has it, of a power of two of shards; of the last one the buckets that
  /// have been taken. Lives until the next begin(), and may be written to.
  Tensor sum();
  /// Bytes that it holds.
  int64_t bytes() const;

 private:
  void add_or_copy(const GradientLayout::Bucket& bucket, float* to, bool adds);

  nn::Parameters* parameters_;
  const GradientLayout* layout_;
  std::vector<Tensor> sets_;  // of 2^i shards each, i from the last to the first
  int64_t shards_ = 0;        // taken
  size_t buckets_ = 0;        // of the next one
  std::vector<uint8_t> came_;
  std::vector<std::vector<float>> buffers_;  // before the batch, by parameter
};

}  // namespace heddle::train
