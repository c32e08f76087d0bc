// What the next item of attention reads and writes, fetched into the caches while this one is
// computed: heads lie apart, in pieces too small for the processor to see a pattern.
#pragma once

#include <array>
#include <limits>

#include "heddle/kernels/cpu/attention/attention_plan.h"

namespace heddle::cpu {

/// Starts to fetch some bytes.
inline void fetch_bytes(const char* at, int64_t bytes, bool to_write) {
  constexpr int64_t kLine = 64;
  for (int64_t b = 0; b < bytes; b += kLine) {
    to_write ? __builtin_prefetch(at + b, 1) : __builtin_prefetch(at + b);
  }
}
/// Columns [column, column + width) of a row.
inline void fetch_columns(const Rows& x, int64_t row, int64_t column, int64_t width) {
  const int64_t size = size_of(x.dtype);
  const char* const from = static_cast<const char*>(x.data);
  fetch_bytes(from + (row * x.stride + column) * size, width * size, false);
}

/// Columns of rows, to be fetched a few at a time: all at once would keep what is computed from
/// what it needs.
class RowsAhead {
 public:
  /// Columns [column, column + width) of rows [first, first + count).
  void add(const Rows& x, int64_t first, int64_t count, int64_t column, int64_t width,
           bool to_write = false) {
    if (count <= 0) return;
    const int64_t size = size_of(x.dtype);
    const char* const at = static_cast<const char*>(x.data) + (first * x.stride + column) * size;
    parts_[end_++] = {at, x.stride * size, width * size, count, to_write};
    rows_ += count;
  }
  /// About so many calls of fetch_some() are to come.
  void spread(int64_t calls) {
    calls = std::max<int64_t>(calls, 1);
    rows_a_call_ = (rows_ + calls - 1) / calls;
  }
  void fetch_some() { fetch(rows_a_call_); }
  void fetch_rest() { fetch(rows_); }

 private:
  struct Part {
    const char* at;
    int64_t stride, bytes, rows;
    bool to_write;
  };

  void fetch(int64_t rows) {
    while (rows > 0 && next_ != end_) {
      Part& part = parts_[next_];
      const int64_t now = std::min(rows, part.rows);
      const char* at = part.at;
      for (int64_t i = 0; i < now; ++i, at += part.stride) {
        fetch_bytes(at, part.bytes, part.to_write);
      }
      part.at = at, rows -= now, part.rows -= now;
      if (part.rows == 0) ++next_;
    }
  }

  std::array<Part, 8> parts_;
  size_t next_ = 0, end_ = 0;
  int64_t rows_ = 0, rows_a_call_ = 0;
};

/// Rows of queries and of keys that are worth it without spreading them.
inline constexpr int64_t kRowsAtOnce = 32;
inline constexpr int64_t kAllRows = std::numeric_limits<int64_t>::max();

/// What the forward pass reads of an item, at most so many rows of each; nothing of no item.
inline RowsAhead rows_of(const AttentionArgs& args, const AttentionItem* item,
                         int64_t most = kAllRows) {
  RowsAhead ahead;
  if (item == nullptr) return ahead;
  const SegmentSizes sizes(args, item->segment);
  const int64_t width = args.head_dim, shared = key_column(args, item->head);
  const int64_t queries = std::min(item->q_end - item->q_begin, most);
  ahead.add(args.q, sizes.q_first + item->q_begin, queries, item->head * width, width);
  if (args.key_rows) return ahead;
  const int64_t keys = std::min(item->k_end - item->k_begin, most);
  ahead.add(args.k, sizes.k_first + item->k_begin, keys, shared, width);
  ahead.add(args.v, sizes.k_first + item->k_begin, keys, shared, width);
  return ahead;
}
/// The same with what the backward pass reads and writes.
inline RowsAhead rows_of(const AttentionBackwardArgs& args, const AttentionItem* item,
                         int64_t most = kAllRows) {
  const AttentionArgs& forward = args.forward;
  RowsAhead ahead = rows_of(forward, item, most);
  if (item == nullptr) return ahead;
  const int64_t width = forward.head_dim, column = item->head * width;
  const int64_t query = forward.q_offsets[item->segment] + item->q_begin;
  const int64_t queries = std::min(item->q_end - item->q_begin, most);
  ahead.add(forward.o, query, queries, column, width);
  ahead.add(args.d_o, query, queries, column, width);
  if (item->wants_dq) ahead.add(args.dq, query, queries, column, width, true);
  if (!item->wants_dkv) return ahead;
  const int64_t key = forward.k_offsets[item->segment] + item->k_begin;
  const int64_t keys = std::min(item->k_end - item->k_begin, most);
  ahead.add(args.dk, key, keys, column, width, true);
  ahead.add(args.dv, key, keys, column, width, true);
  return ahead;
}

}  // namespace heddle::cpu
