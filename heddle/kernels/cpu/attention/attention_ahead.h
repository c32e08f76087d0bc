// What the next item of attention reads and writes, fetched into the caches while this one is
// computed: heads lie apart, in pieces too small for the processor to see a pattern.
#pragma once

#include <array>
#include <limits>

#include "heddle/kernels/cpu/attention/attention_plan.h"

namespace heddle::cpu {

/// Starts to fetch some bytes; if not at once, into the second-level cache alone: with f32 vectors,
/// which fetch all rows before an item, that is 4 to 6 % slower, with tiles 5 % faster.
template <bool kAtOnce>
inline void fetch_bytes(const char* at, int64_t bytes) {
  constexpr int64_t kLine = 64;
  for (int64_t b = 0; b < bytes; b += kLine) __builtin_prefetch(at + b, 0, kAtOnce ? 3 : 2);
}
/// Starts to fetch columns [column, column + width) of a row.
inline void fetch_columns(const Rows& x, int64_t row, int64_t column, int64_t width) {
  const int64_t size = size_of(x.dtype);
  const char* const from = static_cast<const char*>(x.data);
  fetch_bytes<true>(from + (row * x.stride + column) * size, width * size);
}

/// Columns of rows, to be fetched a few rows at a time: all at once would keep what is computed
/// from what it needs. What is to be written is fetched as if it were read: no other core has it.
class RowsAhead {
 public:
  void add(const Rows& x, const Range& rows, const Range& columns) {
    if (rows.size() <= 0) return;
    const int64_t size = size_of(x.dtype);
    const char* const at =
        static_cast<const char*>(x.data) + (rows.begin * x.stride + columns.begin) * size;
    const Part part{at, x.stride * size, columns.size() * size, rows.size()};
    if (end_ > 0 && parts_[end_ - 1].goes_on_in(part)) {
      parts_[end_ - 1].bytes += part.bytes;
      return;
    }
    parts_[end_++] = part;
    rows_ += part.rows;
  }
  /// About so many calls of fetch_some() are to come.
  void spread(int64_t calls) {
    calls = std::max<int64_t>(calls, 1);
    rows_a_call_ = (rows_ + calls - 1) / calls;
  }
  void fetch_some() { fetch<false>(rows_a_call_); }
  void fetch_rest() { fetch<false>(rows_); }
  /// Everything, not spread.
  void fetch_at_once() { fetch<true>(rows_); }

 private:
  struct Part {
    const char* at;
    int64_t stride, bytes, rows;

    // Whether the rows of another one lie behind the rows of this: queries, keys and values do.
    bool goes_on_in(const Part& p) const {
      return p.at == at + bytes && p.stride == stride && p.rows == rows;
    }
  };

  template <bool kAtOnce>
  void fetch(int64_t rows) {
    while (rows > 0 && next_ != end_) {
      Part& part = parts_[next_];
      const int64_t now = std::min(rows, part.rows);
      const char* at = part.at;
      for (int64_t i = 0; i < now; ++i, at += part.stride) fetch_bytes<kAtOnce>(at, part.bytes);
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

/// Rows of queries and of keys, and columns of both, that are fetched beside an item.
struct NextRows {
  Range queries, keys;
  Range columns, shared;  ///< of queries; of keys and values
  bool dq = false, dkv = false;
};

/// Beside a head of a short segment, before another one, its share of that one's rows, all heads of
/// them: rows that lie behind each other go on where a processor expects it. Beside another head
/// the next one, at most so many rows. Nothing where nothing comes.
inline NextRows next_rows_of(const AttentionArgs& args, const ItemGroup& group,
                             const AttentionItem& item, int64_t most = kAllRows) {
  constexpr int64_t kShort = 32 << 10;  // bytes of queries, keys and values
  const auto is_short = [&](const AttentionItem* of) {
    if (of == nullptr) return false;
    const SegmentSizes sizes(args, of->segment);
    const int64_t numbers = sizes.queries * args.q.width + 2 * sizes.keys * args.k.width;
    return numbers * size_of(args.q.dtype) <= kShort;
  };
  const AttentionItem* next = is_short(&item) ? group.after_segment(item) : nullptr;
  const bool whole = is_short(next);
  if (!whole) next = group.after(item);
  if (next == nullptr) return {};
  const SegmentSizes sizes(args, next->segment);
  const auto rows = [](int64_t first, int64_t begin, int64_t end) {
    return Range{first + begin, first + end};
  };
  NextRows next_rows;
  next_rows.dq = next->wants_dq, next_rows.dkv = next->wants_dkv;
  if (whole) {
    const auto share = [&](int64_t first, int64_t n) {
      return rows(first, n * item.head / args.heads, n * (item.head + 1) / args.heads);
    };
    next_rows.queries = share(sizes.q_first, sizes.queries);
    next_rows.keys = share(sizes.k_first, sizes.keys);
    next_rows.columns = {0, args.q.width}, next_rows.shared = {0, args.k.width};
    return next_rows;
  }
  const auto upto = [&](int64_t begin, int64_t end) { return begin + std::min(end - begin, most); };
  const auto head = [&](int64_t column) { return Range{column, column + args.head_dim}; };
  next_rows.queries = rows(sizes.q_first, next->q_begin, upto(next->q_begin, next->q_end));
  next_rows.keys = rows(sizes.k_first, next->k_begin, upto(next->k_begin, next->k_end));
  next_rows.columns = head(next->head * args.head_dim);
  next_rows.shared = head(key_column(args, next->head));
  return next_rows;
}

/// What the forward pass reads and writes of these.
inline RowsAhead rows_of(const AttentionArgs& args, const NextRows& of) {
  RowsAhead rows;
  rows.add(args.q, of.queries, of.columns);
  if (!args.key_rows) {
    rows.add(args.k, of.keys, of.shared);
    rows.add(args.v, of.keys, of.shared);
  }
  rows.add(args.o, of.queries, of.columns);
  return rows;
}
/// The same and what the backward pass does beside.
inline RowsAhead rows_of(const AttentionBackwardArgs& args, const NextRows& of) {
  RowsAhead rows = rows_of(args.forward, of);
  rows.add(args.d_o, of.queries, of.columns);
  if (of.dq) rows.add(args.dq, of.queries, of.columns);
  if (of.dkv) {
    rows.add(args.dk, of.keys, of.shared);
    rows.add(args.dv, of.keys, of.shared);
  }
  return rows;
}

}  // namespace heddle::cpu
