// Kernels of softmax attention.
#pragma once

#include <algorithm>
#include "heddle/kernels/dropout.h"
#include "heddle/kernels/family.h"

namespace heddle {

/// How a query is compared with a key.
enum class Scoring {
  dot,       ///< q k times a scale
  additive,  ///< vᵀ tanh(q + k)
  linear     ///< wᵀ [q; k]
};

/// Which keys queries see, by integers: query i (a row) those of its segment whose order lies in
/// [first[i], limit[i]).
struct KeyRanges {
  const int32_t* first = nullptr;  ///< [q rows]; null, as limit is then: there are no ranges
  const int32_t* limit = nullptr;  ///< [q rows]
  /// [k_offsets[segments]]; null: a key's order is its index in its segment
  const int32_t* order = nullptr;
};

/// What is added to scores: to that of head h, key j and query i of a segment of n queries and m
/// keys values[h * (2 * reach + 1) + reach + clamp(j - (i + m - n), -reach, reach)]; or, by pairs,
/// values[(h * side + i) * side + j].
struct ScoreBias {
  const float* values = nullptr;  ///< [heads, entries()]; null: nothing
  int64_t reach = 0;
  int64_t side = 0;  ///< not 0: by pairs; no segment has more queries or keys

  bool is_by_pairs() const { return side > 0; }
  /// Of a head.
  int64_t entries() const { return is_by_pairs() ? side * side : 2 * reach + 1; }
};

/// Softmax attention of packed sequences, head by head (columns h * head_dim ..). Segment i:
/// queries [q_offsets[i], q_offsets[i+1]), keys [k_offsets[i], k_offsets[i+1]) of k and v, or, if
/// key_rows is given, the rows key_rows[k_offsets[i] ..] of k and v. With `causal`, query j of a
/// segment of n queries and m keys sees keys 0 .. j + m - n; where there are ranges they say it
/// instead. A query that sees no key gives zeros.
struct AttentionArgs {
  Rows q = {};          ///< [rows, heads * head_dim]
  Rows k = {}, v = {};  ///< [rows, key heads * head_dim]: heads / key heads neighbours share one
  Rows o = {};          ///< [q rows, heads * head_dim]
  const int64_t* q_offsets = nullptr;  ///< [segments + 1]
  const int64_t* k_offsets = nullptr;  ///< [segments + 1]
  int64_t segments = 0;
  const int32_t* key_rows = nullptr;  ///< [k_offsets[segments]]
  int64_t heads = 1;
  int64_t head_dim = 0;
  float scale = 1;
  bool causal = false;
  KeyRanges ranges = {};
  ScoreBias bias = {};
  Dropout dropout = {};  ///< on the weights; row = query, column = key in its segment, head = head
  float* lse =
      nullptr;  ///< [q rows, heads] log of the sum of exponentials, for backward; may be null
};

struct AttentionBackwardArgs {
  AttentionArgs forward = {};  ///< o and lse as computed; key_rows must be null
  Rows d_o = {};
  Rows dq = {}, dk = {},
       dv = {};             ///< written, not added to; rows outside every segment stay as they are
  float* d_bias = nullptr;  ///< as the bias's values, written; null if there is no bias
};

/// Pairs of a query and a key that it sees, in all segments.
inline int64_t visible_pairs(const AttentionArgs& args) {
  int64_t pairs = 0;
  for (int64_t i = 0; i < args.segments; ++i) {
    const int64_t n = args.q_offsets[i + 1] - args.q_offsets[i];
    const int64_t m = args.k_offsets[i + 1] - args.k_offsets[i];
    if (args.ranges.limit != nullptr) {
      for (int64_t q = args.q_offsets[i]; q < args.q_offsets[i + 1]; ++q) {
        if (args.ranges.order != nullptr) {
          const int32_t* const first = args.ranges.order + args.k_offsets[i];
          pairs += std::count_if(first, first + m, [&](int32_t order) {
            return args.ranges.first[q] <= order && order < args.ranges.limit[q];
          });
          continue;
        }
        pairs += std::max<int64_t>(
            0, std::min<int64_t>(args.ranges.limit[q], m) - std::max(args.ranges.first[q], 0));
      }
      continue;
    }
    const int64_t last = std::min(n, m);  // queries that see a key, if causal: m, m - 1, ..
    pairs += args.causal ? last * m - last * (last - 1) / 2 : n * m;
  }
  return pairs;
}

inline double product_flops(const AttentionArgs& args) {
  return 2.0 * static_cast<double>(visible_pairs(args)) *
         static_cast<double>(args.heads * args.head_dim);
}

/// 2 products of queries and visible keys
inline Work work_of(const AttentionArgs& args) {
  const int64_t keys = args.key_rows == nullptr ? args.k.rows : args.k_offsets[args.segments];
  return {bytes_of(args.q) + bytes_of(args.o) + keys * (row_bytes(args.k) + row_bytes(args.v)),
          2 * product_flops(args)};
}
/// 5 products, one of them again
inline Work work_of(const AttentionBackwardArgs& args) {
  const AttentionArgs& f = args.forward;
  return {bytes_of(f.q) + bytes_of(f.k) + bytes_of(f.v) + bytes_of(f.o) + bytes_of(args.d_o) +
              bytes_of(args.dq) + bytes_of(args.dk) + bytes_of(args.dv),
          5 * product_flops(f)};
}

/// attention_definition.cc
namespace definition {
void attention(const AttentionArgs& args);
void attention_backward(const AttentionBackwardArgs& args);
}  // namespace definition

struct AttentionKernels {
  void (*attention)(const AttentionArgs&);
  void (*attention_backward)(const AttentionBackwardArgs&);

  static AttentionKernels of_cpu();
  static void list(const auto& visit) {
    HEDDLE_LIST_KERNEL(AttentionKernels, attention);
    HEDDLE_LIST_KERNEL(AttentionKernels, attention_backward);
  }
};

}  // namespace heddle
