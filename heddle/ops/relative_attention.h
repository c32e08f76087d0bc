// Attention whose scores know how far apart tokens stand: Transformer-XL's and XLNet's.
#pragma once

#include <algorithm>

#include "heddle/ops/attention.h"

namespace heddle {

/// What relative scores are made of. d: width of a head; column block h is head h.
struct RelativeInputs {
  Tensor content;   ///< q + u: [query rows, heads * d]
  Tensor distance;  ///< q + v: the same shape
  Tensor k, v;      ///< [key rows, heads * d]
  Tensor r;         ///< [distances, heads * d]; row t is for keys `farthest - t` positions back
  /// [query rows, 2 * heads] f32, or undefined: columns 2 h and 2 h + 1 are what head h adds for
  /// keys of the query's own type, and of another (XLNet's segments).
  Tensor types;

  RelativeInputs detached() const {
    return {content.detached(), distance.detached(), k.detached(),
            v.detached(),       r.detached(),        types.detached()};
  }
};

/// Whose rows they are, where they stand, and who sees whom: integers of each row.
struct RelativeRows {
  Segments queries, keys;                ///< segment i of both is sequence i
  std::vector<int32_t> query_positions;  ///< [query rows]
  std::vector<int32_t> key_positions;  ///< [key rows]; a key is query position - key position back
  /// With an order for each key, if anything. Causal: order is the position, limit the position +
  /// 1, and first ends a window; XLNet: order is the step at which a token becomes known.
  Visibility visibility;
  std::vector<int32_t> query_types, key_types;  ///< where `types` are defined
  /// For any other rule, beside that one: a value for each query and key, segment by segment, row
  /// by row, not 0 where the key is hidden; empty: none is. A query that sees no key then takes all
  /// of its segment alike, as Hugging Face's XLNet does by adding -1e30 to each score.
  std::vector<uint8_t> hidden;
};

struct RelativeOptions {
  int64_t heads = 1;
  int32_t farthest = 0;      ///< the distance of row 0 of r; further keys count as that far, and
                             ///< those beyond the last row as being there
  float scale = 0;           ///< of the scores; 0: 1 / sqrt(d)
  DropoutSpec dropout = {};  ///< on the weights; row ids are those of the queries

  /// The row of r, of `count`, for a query and a key that stand at these positions.
  int64_t row_of_r(int64_t count, int32_t query, int32_t key) const {
    return std::clamp<int64_t>(int64_t{farthest} - query + key, 0, count - 1);
  }
};

/// softmax(((q + u)·k + (q + v)·r + types) scale) v for each segment and head. Queries go through
/// in blocks, whose weights are made again in the backward pass: memory is linear in the lengths.
/// returns: [query rows, heads * d]
/// Errors: shape if sizes do not fit.
/// Source: Dai et al. 2019, "Transformer-XL", section 3.3; Yang et al. 2019, "XLNet", section 2.5.
Tensor relative_attention(const RelativeInputs& x, const RelativeRows& rows,
                          const RelativeOptions& options);
/// The weights of some queries of one segment and head, [of.count, keys] f32, recomputed for
/// inspection.
Tensor relative_attention_weights(const RelativeInputs& x, const RelativeRows& rows,
                                  const RelativeOptions& options, int64_t segment, int64_t head,
                                  QueryRows of);

}  // namespace heddle
