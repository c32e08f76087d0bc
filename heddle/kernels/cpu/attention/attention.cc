// Softmax attention of packed sequences, tile by tile with a running softmax: the matrix of weights
// never exists. Dao et al. 2022, "FlashAttention"; Milakov and Gimelshein 2018 for the running sum.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "heddle/kernels/cpu/attention/attention.cc"
#include <limits>

#include "heddle/kernels/cpu/attention/attention_ahead.h"
#include "heddle/kernels/cpu/attention/attention_pairs.h"
#include "heddle/kernels/cpu/attention/attention_tiles.h"
#include "heddle/kernels/cpu/targets.h"
#include "hwy/foreach_target.h"
// after foreach_target.h
#include "heddle/kernels/cpu/attention/attention-inl.h"
#include "hwy/contrib/math/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heddle::cpu::HWY_NAMESPACE {
namespace {

constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

// Queries that go through a tile together.
constexpr int64_t kQueryBlock = 32;
// Up to so many queries are faster one by one, with a key in each lane.
constexpr int64_t kFewQueries = 4;
// Multiplications of a group of those, which wait for keys and values: 20 us. One token of GPT-2
// behind 64 others counts as 0.9 million and took one thread 66 us (EPYC, Zen 3, 2026-11).
constexpr double kFewGroupWork = 3e5;

// Which scores of a tile have to be hidden: none, by limits (causal), by ranges.
enum class Mask { none, limit, range };

// Keys of a segment that queries meet at a time.
struct KeyTile {
  int64_t begin, count;
  Orders orders;
};

// One head of a range of queries of a segment, with the memory of its tiles. Scores lie key by key,
// a query in each lane, so that maxima and sums over keys need nothing across lanes.
struct ForwardItem : HeadItem {
  const AttentionArgs& args;
  const int64_t stride;       // of packed rows
  const int64_t n;            // queries
  const int64_t columns;      // of packed queries
  float* q;                   // [head_dim, columns]: queries times scale
  float* o;                   // [n, stride]: sums of weighted values
  float *k, *v;               // [kKeyTile, stride]: a tile of keys and values
  float* s;                   // [kKeyTile, kQueryBlock]: scores, then weights
  float *most, *sum;          // [columns]: running maximum, running sum of exponentials
  float* shrink;              // [kQueryBlock]: what earlier sums are to be multiplied by
  int32_t *first, *limit;     // [columns]: the ranges of the queries
  int32_t* order;             // [kKeyTile]: of the keys of the tile
  uint32_t started = 0;       // a bit for each block of queries, or for each of few, that has sums
  const PairMatrices& pairs;  // the bias, by key

  ForwardItem(const AttentionArgs& a, const AttentionItem& i, const PairMatrices& bias)
      : HeadItem(a, i),
        args(a),
        stride(padded16(a.head_dim)),
        n(i.q_end - i.q_begin),
        columns(padded16(n)),
        pairs(bias) {
    AttentionScratch memory(
        (2 * columns + 2 * kKeyTile) * stride + kKeyTile * kQueryBlock + 2 * columns + kQueryBlock,
        2 * columns + kKeyTile);
    q = memory.take(stride * columns);
    o = memory.take(columns * stride);
    k = memory.take(kKeyTile * stride);
    v = memory.take(kKeyTile * stride);
    s = memory.take(kKeyTile * kQueryBlock);
    most = memory.take(columns);
    sum = memory.take(columns);
    shrink = memory.take(kQueryBlock);
    first = memory.take_integers(columns);
    limit = memory.take_integers(columns);
    order = memory.take_integers(kKeyTile);
  }

  void run();
  Sight sight(int64_t row, int64_t rows) const {
    return sizes.sight(item.q_begin + row, item.q_begin + row + rows);
  }
  Mask mask_of(const Sight& queries, const KeyTile& tile, int64_t keys) const;
  void block(int64_t row, const KeyTile& tile, int64_t keys);
  template <Mask kMask>
  void softmax(int64_t row, int64_t lane, int64_t keys);
  void add_bias(int64_t row, int64_t lane, int64_t tile, int64_t keys);
  void drop(int64_t row, int64_t lane, int64_t tile, int64_t keys);
  void few_queries(const KeyTile& tile, const RowSource& keys, const RowSource& values);
  float softmax_one(int64_t row, int64_t tile, int64_t keys, float* w);
  void finish();
};

Mask ForwardItem::mask_of(const Sight& queries, const KeyTile& tile, int64_t keys) const {
  if (sizes.has_ranges()) return queries.holds(tile.orders) ? Mask::none : Mask::range;
  return queries.least_limit - tile.begin >= keys ? Mask::none : Mask::limit;
}

// Scores of a vector of queries become exp(score - maximum); keys that a query may not see give 0.
template <Mask kMask>
void ForwardItem::softmax(int64_t row, int64_t lane, int64_t keys) {
  const F32 d;
  const I32 di;
  constexpr bool kMasked = kMask != Mask::none;
  float* HWY_RESTRICT at = s + lane;
  const auto least = hn::Load(di, first + row + lane), end = hn::Load(di, limit + row + lane);
  const auto sees = [&](int64_t key) HWY_ATTR {
    const auto here = hn::Set(di, order[key]);
    const auto is_below = hn::Lt(here, end);
    if constexpr (kMask != Mask::range) return hn::RebindMask(d, is_below);
    return hn::RebindMask(d, hn::AndNot(hn::Lt(here, least), is_below));
  };
  Vec high = splat(kMinusInfinity);
  for (int64_t j = 0; j < keys; ++j) {
    Vec score = hn::Load(d, at + j * kQueryBlock);
    if (kMasked) score = hn::IfThenElse(sees(j), score, splat(kMinusInfinity));
    high = hn::Max(high, score);
  }
  const Vec before = hn::Load(d, most + row + lane);
  const Vec now = hn::Max(before, high);
  const auto weight = [&](int64_t j) HWY_ATTR {
    Vec e = exp_weight(hn::Sub(hn::Load(d, at + j * kQueryBlock), now));
    if (kMasked) e = hn::IfThenElseZero(sees(j), e);
    hn::Store(e, d, at + j * kQueryBlock);
    return e;
  };
  // Four sums, of every fourth key each: the order is the same for every path to a query's result.
  Vec sum0 = zero(), sum1 = zero(), sum2 = zero(), sum3 = zero();
  int64_t j = 0;
  for (; j + 4 <= keys; j += 4) {
    sum0 = hn::Add(sum0, weight(j));
    sum1 = hn::Add(sum1, weight(j + 1));
    sum2 = hn::Add(sum2, weight(j + 2));
    sum3 = hn::Add(sum3, weight(j + 3));
  }
  if (j < keys) sum0 = hn::Add(sum0, weight(j));
  if (j + 1 < keys) sum1 = hn::Add(sum1, weight(j + 1));
  if (j + 2 < keys) sum2 = hn::Add(sum2, weight(j + 2));
  const Vec total = hn::Add(hn::Add(sum0, sum1), hn::Add(sum2, sum3));
  // Where nothing is seen yet both are -inf: the difference would be NaN.
  const Vec factor =
      hn::IfThenElse(hn::Eq(before, now), splat(1.0f), exp_weight(hn::Sub(before, now)));
  hn::Store(factor, d, shrink + lane);
  hn::Store(now, d, most + row + lane);
  hn::Store(hn::MulAdd(hn::Load(d, sum + row + lane), factor, total), d, sum + row + lane);
}

// Scores of a vector of queries gain what their pairs with the keys, or distances from them, give.
void ForwardItem::add_bias(int64_t row, int64_t lane, int64_t tile, int64_t keys) {
  const F32 d;
  if (args.bias.is_by_pairs()) {
    const float* from = pairs.head(item.head) + tile * pairs.stride() + item.q_begin + row + lane;
    for (int64_t j = 0; j < keys; ++j, from += pairs.stride()) {
      float* at = s + j * kQueryBlock + lane;
      hn::Store(hn::Add(hn::Load(d, at), hn::LoadU(d, from)), d, at);
    }
    return;
  }
  const HeadBias bias(args, item.head);
  for (int64_t j = 0; j < keys; ++j) {
    float* at = s + j * kQueryBlock + lane;
    const int64_t distance = tile + j - sizes.position(item.q_begin + row + lane);
    hn::Store(hn::Add(hn::Load(d, at), bias.lanes<-1>(distance)), d, at);
  }
}

// Dropped weights become 0. Philox runs over the queries of a vector for one key in sixteen.
void ForwardItem::drop(int64_t row, int64_t lane, int64_t tile, int64_t keys) {
  const F32 d;
  const U32 du;
  const Dropout& dropout = args.dropout;
  const int64_t query = sizes.q_first + item.q_begin + row + lane;
  const int64_t count = std::min(kLanes, n - row - lane);
  const VecU32 position = load_tail(du, dropout.position + query, count);
  const VecU32 sample = load_tail(du, dropout.sample + query, count);
  const VecU32 head = hn::Set(du, static_cast<uint32_t>(item.head));
  const auto threshold = hn::Set(I32(), static_cast<int32_t>(dropout.threshold()));
  const auto block_words = static_cast<uint32_t>(tile / 128 * 16);
  for (int64_t j = 0; j < std::min<int64_t>(keys, 16); ++j) {
    VecU32 words[4];
    const VecU32 counter = hn::Set(du, block_words + static_cast<uint32_t>(j));
    philox_lanes(counter, position, sample, head, dropout.key, words);
    for (int64_t c = j; c < keys; c += 16) {
      const VecU32 word = words[(tile % 128 + c) / 32];
      const auto dropped = dropped_lanes(word, c / 16, threshold);
      float* at = s + c * kQueryBlock + lane;
      hn::Store(hn::IfThenZeroElse(dropped, hn::Load(d, at)), d, at);
    }
  }
}

// Queries from `row` on, at most kQueryBlock, against the first `keys` keys of a tile.
void ForwardItem::block(int64_t row, const KeyTile& tile, int64_t keys) {
  const F32 d;
  const int64_t rows = std::min(kQueryBlock, n - row);
  const uint32_t bit = uint32_t{1} << (row / kQueryBlock);
  const bool has_sums = (started & bit) != 0;
  started |= bit;
  product(
      {k, stride, 1, q + row, columns, s, kQueryBlock, keys, padded16(rows), args.head_dim, false});
  for (int64_t lane = 0; lane < rows; lane += kLanes) {
    if (args.bias.values) add_bias(row, lane, tile.begin, keys);
    switch (mask_of(sight(row + lane, std::min(kLanes, rows - lane)), tile, keys)) {
      case Mask::none: softmax<Mask::none>(row, lane, keys); break;
      case Mask::limit: softmax<Mask::limit>(row, lane, keys); break;
      case Mask::range: softmax<Mask::range>(row, lane, keys); break;
    }
    if (args.dropout.p > 0) drop(row, lane, tile.begin, keys);
  }
  for (int64_t i = 0; i < rows && has_sums; ++i) {
    if (shrink[i] == 1) continue;
    float* to = o + (row + i) * stride;
    for (int64_t c = 0; c < stride; c += kLanes) {
      hn::Store(hn::Mul(hn::Load(d, to + c), splat(shrink[i])), d, to + c);
    }
  }
  product({s, 1, kQueryBlock, v, stride, o + row * stride, stride, rows, args.head_dim, keys,
           has_sums});
}

// softmax() and drop() for one query, whose scores lie side by side: the same operations in the
// same order on every number, so the same bits. Returns what earlier sums are to be multiplied by.
float ForwardItem::softmax_one(int64_t row, int64_t tile, int64_t keys, float* HWY_RESTRICT w) {
  const F32 d;
  const hn::FixedTag<float, 4> d4;
  const RangeOf range(first[row], limit[row]);
  const auto seen = [&](int64_t c) HWY_ATTR { return range.seen(order + c); };
  Vec high = splat(kMinusInfinity);
  for (int64_t c = 0; c < keys; c += kLanes) {
    high = hn::Max(high, hn::IfThenElse(seen(c), hn::Load(d, w + c), splat(kMinusInfinity)));
  }
  const float before = most[row];
  const Vec now = hn::Max(splat(before), splat(max_lanes(high)));
  for (int64_t c = 0; c < keys; c += kLanes) {
    const Vec e = exp_weight(hn::Sub(hn::Load(d, w + c), now));
    hn::Store(hn::IfThenElseZero(seen(c), e), d, w + c);
  }
  auto sums = hn::Zero(d4);
  for (int64_t c = 0; c < keys; c += 4) sums = hn::Add(sums, hn::Load(d4, w + c));
  HWY_ALIGN float part[4];
  hn::Store(sums, d4, part);
  const float total = (part[0] + part[1]) + (part[2] + part[3]);
  most[row] = hn::GetLane(now);
  const float factor =
      before == most[row] ? 1.0f : hn::GetLane(exp_weight(hn::Sub(splat(before), now)));
  sum[row] = hn::GetLane(hn::MulAdd(splat(sum[row]), splat(factor), splat(total)));
  if (args.dropout.p > 0) {
    DropoutRow dropout(args.dropout, sizes.q_first + item.q_begin + row,
                       static_cast<uint32_t>(item.head));
    for (int64_t c = 0; c < keys; c += kLanes) {
      const Vec kept = hn::IfThenZeroElse(dropout.dropped(tile + c), hn::Load(d, w + c));
      hn::Store(kept, d, w + c);
    }
  }
  return factor;
}

// to = to * factor + sum over keys of w * value, values read where they are; columns from c on,
// some vectors of them side by side. Returns the first column that is left.
template <int kVectors, class T>
HWY_INLINE int64_t add_value_vectors(const RowSource& values, const float* HWY_RESTRICT w,
                                     int64_t keys, float factor, bool starts, int64_t width,
                                     int64_t c, float* HWY_RESTRICT to) {
  const F32 d;
  for (; c + kVectors * kLanes <= width; c += kVectors * kLanes) {
    Vec total[kVectors];
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) {
      total[v] = starts ? zero() : hn::Load(d, to + c + v * kLanes);
      if (factor != 1 && !starts) total[v] = hn::Mul(total[v], splat(factor));
    }
    for (int64_t j = 0; j < keys; ++j) {
      const T* from = values.row<T>(j) + c;
      const Vec weight = splat(w[j]);
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) {
        total[v] = hn::MulAdd(weight, load(from + v * kLanes, Full{}), total[v]);
      }
    }
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) hn::Store(total[v], d, to + c + v * kLanes);
  }
  return c;
}

template <class T>
void add_values(const RowSource& values, const float* HWY_RESTRICT w, int64_t keys, float factor,
                bool starts, int64_t width, float* HWY_RESTRICT to) {
  int64_t first = add_value_vectors<8, T>(values, w, keys, factor, starts, width, 0, to);
  first = add_value_vectors<4, T>(values, w, keys, factor, starts, width, first, to);
  for_columns(width - first, [&](int64_t rest, auto part) HWY_ATTR {
    const int64_t c = first + rest;
    Vec total = starts ? zero() : hn::Load(F32(), to + c);
    if (factor != 1 && !starts) total = hn::Mul(total, splat(factor));
    for (int64_t j = 0; j < keys; ++j) {
      total = hn::MulAdd(splat(w[j]), load(values.row<T>(j) + c, part), total);
    }
    hn::Store(total, F32(), to + c);
  });
}

// Starts to fetch rows that a query is to meet: they lie far apart, where a processor sees no
// pattern.
void fetch_rows(const RowSource& rows, int64_t count, int64_t width) {
  for (int64_t i = 0; i < count; ++i) {
    fetch_columns(rows.x, rows.index ? rows.index[i] : rows.first + i, rows.column, width);
  }
}

// All queries (at most kFewQueries) against a tile: decoding with a cache.
void ForwardItem::few_queries(const KeyTile& tile, const RowSource& keys, const RowSource& values) {
  fetch_rows(values, tile.count, args.head_dim);
  pack_columns(keys, tile.count, args.head_dim, 1, kKeyTile, k);
  product({q, stride, 1, k, kKeyTile, s, kKeyTile, n, padded16(tile.count), args.head_dim, false});
  for (int64_t row = 0; row < n; ++row) {
    const int64_t sees = sizes.seen(sight(row, 1), tile.orders, tile.begin, tile.count);
    if (sees <= 0) continue;
    float* w = s + row * kKeyTile;
    if (args.bias.is_by_pairs()) {
      const float* from = pairs.head(item.head) + tile.begin * pairs.stride() + item.q_begin + row;
      for (int64_t j = 0; j < sees; ++j) w[j] += from[j * pairs.stride()];
    } else if (args.bias.values) {
      const int64_t distance = tile.begin - sizes.position(item.q_begin + row);
      HeadBias(args, item.head).add_to_row(distance, padded16(sees), w);
    }
    const float factor = softmax_one(row, tile.begin, sees, w);
    float* to = o + row * stride;
    const bool starts = (started >> row & 1) == 0;
    started |= uint32_t{1} << row;
    if (values.x.dtype == DType::bf16) {
      add_values<bf16>(values, w, sees, factor, starts, args.head_dim, to);
    } else {
      add_values<float>(values, w, sees, factor, starts, args.head_dim, to);
    }
  }
}

void ForwardItem::finish() {
  const F32 d;
  const Vec keep = splat(args.dropout.p > 0 ? args.dropout.keep_scale() : 1.0f);
  for (int64_t i = 0; i < n; i += kLanes) {
    const Vec total = hn::Load(d, sum + i);
    const auto none = hn::Eq(hn::Load(d, most + i), splat(kMinusInfinity));
    if (args.lse) {
      const Vec lse = hn::Add(hn::Load(d, most + i), hn::Log(d, total));
      hn::Store(hn::IfThenElse(none, splat(kMinusInfinity), lse), d, most + i);
    }
    hn::Store(hn::IfThenZeroElse(none, hn::Div(keep, total)), d, sum + i);
  }
  const int64_t first_row = sizes.q_first + item.q_begin;
  for (int64_t i = 0; i < n; ++i) {
    store_row(o + i * stride, sum[i], args.o, first_row + i, column, args.head_dim);
    if (args.lse) args.lse[(first_row + i) * args.heads + item.head] = most[i];
  }
}

void ForwardItem::run() {
  std::fill(most, most + columns, kMinusInfinity);
  std::fill(sum, sum + columns, 0.0f);
  const bool few = n <= kFewQueries;
  const RowSource queries{args.q, column, sizes.q_first + item.q_begin};
  if (few) {
    pack_rows(queries, n, args.head_dim, args.scale, stride, q);
  } else {
    pack_columns(queries, n, args.head_dim, args.scale, columns, q);
  }
  const int32_t* index = args.key_rows ? args.key_rows + sizes.k_first : nullptr;
  const bool hides = few || args.causal || sizes.has_ranges();
  if (hides) copy_ranges(sizes, item.q_begin, item.q_end, first, limit);
  const int64_t step = few ? 1 : kQueryBlock;  // queries that a bit of `started` stands for
  for (int64_t begin = item.k_begin; begin < item.k_end; begin += kKeyTile) {
    const int64_t count = std::min(kKeyTile, item.k_end - begin);
    const KeyTile tile{begin, count, sizes.orders(begin, begin + count)};
    if (sight(0, n).misses(tile.orders)) continue;
    if (hides) sizes.copy_orders(begin, count, padded16(count), order);
    const int32_t* at = index ? index + begin : nullptr;
    const RowSource keys{args.k, shared, sizes.k_first + begin, at};
    const RowSource values{args.v, shared, sizes.k_first + begin, at};
    if (few) {
      const int64_t next = begin + count, left = std::min(kKeyTile, item.k_end - next);
      fetch_rows({args.k, shared, sizes.k_first + next, index ? index + next : nullptr}, left,
                 args.head_dim);
      few_queries(tile, keys, values);
      continue;
    }
    pack_rows(keys, count, args.head_dim, 1, stride, k);
    pack_rows(values, count, args.head_dim, 1, stride, v);
    for (int64_t row = 0; row < n; row += step) {
      const Sight of_block = sight(row, std::min(step, n - row));
      const int64_t sees = sizes.seen(of_block, tile.orders, begin, count);
      if (sees > 0) block(row, tile, sees);
    }
  }
  for (int64_t row = 0; row < n; row += step) {  // those that see no key
    if ((started >> (row / step) & 1) != 0) continue;
    std::fill(o + row * stride, o + std::min(row + step, n) * stride, 0.0f);
  }
  finish();
}

void attention_impl(const AttentionArgs& args) {
  const bool few = args.q.rows <= kFewQueries * args.segments;
  AttentionPlan& plan = attention_plan(few ? kFewGroupWork : kVectorGroupWork);
  // Packing a key costs about as much as eight queries against it.
  plan_forward(plan, args, kForwardQueries, {.queries = 8, .keys = 4});
  const PairMatrices pairs = pair_bias(args, true);
  plan.run([&](const ItemGroup& group) {
    for (const AttentionItem& item : group) {
      rows_of(args, next_rows_of(args, group, item, kRowsAtOnce)).fetch_at_once();
      ForwardItem(args, item, pairs).run();
    }
  });
}

}  // namespace
}  // namespace heddle::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heddle::cpu {
HWY_EXPORT(attention_impl);
}  // namespace heddle::cpu

namespace heddle {

AttentionKernels AttentionKernels::of_cpu() {
  const auto attention = [](const AttentionArgs& args) {
    if (cpu::goes_by_tiles(args)) return cpu::attention_tiles(args);
    HWY_DYNAMIC_DISPATCH(cpu::attention_impl)(args);
  };
  return {.attention = attention, .attention_backward = cpu::attention_backward};
}

}  // namespace heddle
#endif
