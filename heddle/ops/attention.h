// Softmax attention over packed sequences.
#pragma once

#include <algorithm>

#include "heddle/ops/dropout.h"
#include "heddle/ops/visibility.h"

namespace heddle {

/// What a score gains by how far the key stands from the query, head by head. Positions are those
/// in the segment; query i of n over m keys stands at i + m - n.
/// Source: Raffel et al. 2020, "Exploring the Limits of Transfer Learning" (T5), section 2.1.
struct RelativeBias {
  Tensor table = {};  ///< [buckets, heads] f32, which gets a gradient; undefined: none
  /// [2 reach + 1] the row of the table for key position - query position = -reach .. reach; keys
  /// that are further apart count as reach apart
  std::shared_ptr<const std::vector<int32_t>> buckets = nullptr;
  /// What stands for the positions of a segment's tokens, the first codes for those of a short one:
  /// y (2 w - 1) + x in a window of w x w (Liu et al. 2021, Swin, section 3.2). Segments have as
  /// many queries as keys then, no more than there are codes. Null: positions count.
  std::shared_ptr<const std::vector<int32_t>> codes = nullptr;

  int64_t reach() const { return static_cast<int64_t>(buckets->size()) / 2; }
  /// From the query at a position to the key at a position.
  int64_t distance(int64_t query, int64_t key) const {
    return codes ? int64_t{(*codes)[key]} - (*codes)[query] : key - query;
  }
  /// The row of the table for a distance, key position - query position.
  int32_t bucket(int64_t distance) const {
    return (*buckets)[reach() + std::clamp(distance, -reach(), reach())];
  }
};

/// What attention needs beside q, k and v.
struct AttentionOptions {
  int64_t heads = 1;
  /// Heads of k and v, of which each serves heads / key_heads neighbours (Ainslie et al. 2023);
  /// 0: as many as heads. d is the width of q divided by heads.
  int64_t key_heads = 0;
  bool causal = false;  ///< query j of n over m keys sees keys 0 .. j + m - n
  /// Who sees whom where `causal` does not say it all; null: it does.
  std::shared_ptr<const Visibility> visibility = nullptr;
  float scale = 0;           ///< of the scores; 0: 1 / sqrt(width of a head)
  DropoutSpec dropout = {};  ///< on the weights; row ids are those of the queries
  std::span<const int32_t> key_rows =
      {};  ///< if not empty: the rows of k and v that are the keys, in order
  Scoring scoring = Scoring::dot;
  Tensor score_weight = {};  ///< [heads, d] of additive, [heads, 2 d] of linear scores
  RelativeBias bias = {};    ///< added to the scaled scores

  int64_t heads_of_keys() const { return key_heads > 0 ? key_heads : heads; }
  /// The head of k and v that serves a head of q.
  int64_t key_head(int64_t head) const { return head / (heads / heads_of_keys()); }
};

/// softmax(q kᵀ scale) v for each segment and head; column block h is head h. Memory is linear in
/// the lengths: the weights are never stored (Dao et al. 2022). q: [query rows, heads * d], k, v:
/// [key rows, key_heads * d], any row strides, one dtype returns: [query rows, heads * d]; a query
/// that sees no key gives zeros Errors: shape if sizes or numbers of segments do not fit, or
/// key_rows are no rows of k. Source: Vaswani et al. 2017, eq. (1).
Tensor attention(const Tensor& q, const Tensor& k, const Tensor& v, const Segments& queries,
                 const Segments& keys, const AttentionOptions& options);
/// Queries first .. first + count - 1 of a segment; a count of -1: up to the last.
struct QueryRows {
  int64_t first = 0, count = -1;
};
/// The weights of some queries of one segment and head, [count, keys] f32, recomputed for
/// inspection.
Tensor attention_weights(const Tensor& q, const Tensor& k, const Segments& queries,
                         const Segments& keys, const AttentionOptions& options, int64_t segment,
                         int64_t head, QueryRows rows = {});

/// The weights of all queries without dropout, averaged over the heads: row after row those of its
/// segment's keys, [pairs] f32, with gradient. For losses that ask where attention goes; of
/// products, where all keys are seen. A segment has the same bits whatever stands beside it.
/// q: [query rows, heads * d], k: [key rows, heads * d]    Errors: shape if sizes do not fit;
/// internal for another scoring, a mask or a bias.
Tensor mean_attention_weights(const Tensor& q, const Tensor& k, const Segments& queries,
                              const Segments& keys, const AttentionOptions& options);

/// Attention over one fused tensor, as self-attention computes it: qkv: [rows, (heads + 2 *
/// key_heads) * d].
Tensor self_attention(const Tensor& qkv, const Segments& segments, const AttentionOptions& options);
/// Attention of q: [query rows, heads * d] over fused kv: [key rows, 2 * heads * d].
Tensor cross_attention(const Tensor& q, const Tensor& kv, const Segments& queries,
                       const Segments& keys, const AttentionOptions& options);

}  // namespace heddle
