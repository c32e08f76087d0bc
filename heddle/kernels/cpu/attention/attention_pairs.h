// Biases of scores by pairs (ScoreBias::side), as vectors read them, and their gradient.
#pragma once

#include <algorithm>
#include <vector>

#include "heddle/kernels/attention.h"

namespace heddle::cpu {

/// Matrices of a side, one a head, with rows of whole vectors: zeros stand behind a row.
class PairMatrices {
 public:
  PairMatrices(int64_t heads, int64_t side)
      : side_(side),
        stride_((side + kVector - 1) / kVector * kVector),
        values_(static_cast<size_t>(heads * side_ * stride_)) {}

  int64_t stride() const { return stride_; }
  float* head(int64_t h) { return values_.data() + h * side_ * stride_; }
  const float* head(int64_t h) const { return values_.data() + h * side_ * stride_; }

 private:
  static constexpr int64_t kVector = 32;
  int64_t side_, stride_;
  std::vector<float> values_;
};

/// factor times the bias by pairs, a row a query or, turned, a row a key; nothing if there is none.
inline PairMatrices pair_bias(const AttentionArgs& args, bool is_by_key, float factor = 1) {
  const int64_t side = args.bias.side;
  PairMatrices all(side > 0 ? args.heads : 0, side);
  for (int64_t h = 0; side > 0 && h < args.heads; ++h) {
    for (int64_t i = 0; i < side * side; ++i) {
      const int64_t query = i / side, key = i % side;
      const int64_t at = is_by_key ? key * all.stride() + query : query * all.stride() + key;
      all.head(h)[at] = factor * args.bias.values[h * side * side + i];
    }
  }
  return all;
}

/// The gradient of a bias by pairs: each group of items sums its own, in the order of the items,
/// and all groups in theirs. Groups must depend on nothing but the problem, so threads change no
/// bit.
class PairGradient {
 public:
  PairGradient(const AttentionBackwardArgs& args, int64_t groups)
      : args_(args), side_(args.d_bias == nullptr ? 0 : args.forward.bias.side) {
    if (side_ > 0) parts_.assign(groups, PairMatrices(args.forward.heads, side_));
  }
  /// That of a group and a head, rows of `stride()`; null if there is none.
  float* part(int64_t group, int64_t head) {
    return parts_.empty() ? nullptr : parts_[static_cast<size_t>(group)].head(head);
  }
  int64_t stride() const { return parts_.empty() ? 0 : parts_[0].stride(); }
  /// Writes the sum; `is_by_key`: the parts are turned.
  void write(bool is_by_key) const {
    for (int64_t i = 0; i < side_ * side_ * args_.forward.heads && side_ > 0; ++i) {
      const int64_t query = i / side_ % side_, key = i % side_;
      const int64_t at = is_by_key ? key * stride() + query : query * stride() + key;
      double total = 0;
      for (const PairMatrices& part : parts_) {
        total += static_cast<double>(part.head(i / (side_ * side_))[at]);
      }
      args_.d_bias[i] = static_cast<float>(total);
    }
  }

 private:
  const AttentionBackwardArgs& args_;
  int64_t side_;
  std::vector<PairMatrices> parts_;
};

/// Work of a group of the backward pass, each of which has a part of the gradient of a bias by
/// pairs: so much that no more than 64 have one, or than take 64 MB. least: what a group has
/// without such a bias
inline double pair_group_work(const AttentionArgs& args, double least) {
  if (!args.bias.is_by_pairs()) return least;
  constexpr int64_t kMostFloats = 16 << 20;
  const int64_t floats = args.heads * (args.bias.side + 31) * (args.bias.side + 31);
  const int64_t groups = std::clamp<int64_t>(kMostFloats / floats, 4, 64);
  double pairs = 0;
  for (int64_t i = 0; i < args.segments; ++i) {
    pairs += static_cast<double>((args.q_offsets[i + 1] - args.q_offsets[i] + 16) *
                                 (args.k_offsets[i + 1] - args.k_offsets[i] + 16));
  }
  const double work = pairs * static_cast<double>(args.heads * args.head_dim * 5);
  return std::max(least, work / static_cast<double>(groups));
}

}  // namespace heddle::cpu
