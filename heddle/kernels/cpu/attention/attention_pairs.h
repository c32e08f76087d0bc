// Biases of scores by pairs (ScoreBias::side), as vectors read them, and their gradient.
#pragma once

#include <algorithm>
#include <vector>

#include "heddle/base/parallel.h"
#include "heddle/kernels/attention.h"
#include "heddle/kernels/cpu/scratch.h"

namespace heddle::cpu {

/// Matrices of a side, one a head, with rows of whole vectors: zeros stand behind a row.
class PairMatrices {
 public:
  PairMatrices(int64_t heads, int64_t side)
      : side_(side),
        stride_(stride_of(side)),
        values_(static_cast<size_t>(heads * side_ * stride_)) {}

  /// Of rows of `side` numbers.
  static int64_t stride_of(int64_t side) { return (side + kVector - 1) / kVector * kVector; }
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
      : to_(args.d_bias),
        heads_(args.forward.heads),
        side_(args.d_bias == nullptr ? 0 : args.forward.bias.side),
        stride_(PairMatrices::stride_of(side_)),
        groups_(groups),
        parts_(scratch<float, 12>(groups * of_group())) {}

  /// Of a group, before its first part is asked for; by any thread.
  void clear(int64_t group) const { std::fill_n(parts_ + group * of_group(), of_group(), 0.0f); }
  /// That of a group and a head, rows of `stride()`; null if there is none.
  float* part(int64_t group, int64_t head) const {
    return side_ == 0 ? nullptr : parts_ + group * of_group() + head * side_ * stride_;
  }
  int64_t stride() const { return stride_; }
  /// Writes the sum; `is_by_key`: the parts are turned.
  void write(bool is_by_key) const {
    if (side_ == 0) return;
    parallel_for(heads_, [&](int64_t h) {
      const int64_t n = side_ * stride_;
      auto* const total = scratch<double, 12>(n);
      std::fill_n(total, n, 0.0);
      for (int64_t g = 0; g < groups_; ++g) {
        const float* const from = part(g, h);
        for (int64_t i = 0; i < n; ++i) total[i] += static_cast<double>(from[i]);
      }
      for (int64_t query = 0; query < side_; ++query) {
        for (int64_t key = 0; key < side_; ++key) {
          const int64_t at = is_by_key ? key * stride_ + query : query * stride_ + key;
          to_[(h * side_ + query) * side_ + key] = static_cast<float>(total[at]);
        }
      }
    });
  }

 private:
  int64_t of_group() const { return heads_ * side_ * stride_; }

  float* to_;
  int64_t heads_, side_, stride_, groups_;
  float* parts_;  // [groups, heads, side, stride], of the thread that made this
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
