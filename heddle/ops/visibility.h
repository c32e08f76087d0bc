// Who sees whom in attention: the one form of masks.
#pragma once

#include <limits>
#include <span>

#include "heddle/tensor/segments.h"

namespace heddle {

/// Query i (a row) sees the keys of its segment whose order lies in [first[i], limit[i]); a query
/// that sees no key gives zeros. All three empty: every key. An order may be the key's index
/// (causal attention, windows), the step at which a token becomes known (XLNet), a region (Swin's
/// shifted windows), or kUnseen.
struct Visibility {
  /// The order of a key that no query sees.
  static constexpr int32_t kUnseen = std::numeric_limits<int32_t>::max();

  std::vector<int32_t> first, limit;  ///< [query rows]
  std::vector<int32_t> order;         ///< [key rows]; empty: the key's index in its segment

  bool is_all() const { return limit.empty(); }
  /// Whether a query (a row) sees a key (a row), `index` of its segment.
  bool sees(int64_t query, int64_t key, int64_t index) const {
    if (is_all()) return true;
    const int64_t at = order.empty() ? index : order[key];
    return first[query] <= at && at < limit[query];
  }
  /// Errors: shape if the numbers of integers are not those of the rows.
  void check_sizes(int64_t query_rows, int64_t key_rows) const;
};

/// Each query sees its whole segment, or, if causal, query i of n over m keys keys 0 .. i + m - n.
Visibility visibility_of(const Segments& queries, const Segments& keys, bool is_causal);
/// Takes from each query the keys that are `window` positions and more behind it. Positions go up
/// along a segment. query_positions: [query rows], key_positions: [key rows]    Errors: shape.
void keep_window(Visibility& visibility, const Segments& queries, const Segments& keys,
                 std::span<const int32_t> query_positions, std::span<const int32_t> key_positions,
                 int64_t window);
/// Hides keys from all, where orders are indices so far. unseen: [key rows], not 0: hidden
/// Errors: shape.
void hide_keys(Visibility& visibility, const Segments& keys, std::span<const uint8_t> unseen);

/// Pairs of a query and a key that it sees, in all segments, by a visibility or, if it is null, by
/// `is_causal`.
int64_t visible_pairs(const Segments& queries, const Segments& keys, bool is_causal,
                      const Visibility* visibility);

}  // namespace heddle
