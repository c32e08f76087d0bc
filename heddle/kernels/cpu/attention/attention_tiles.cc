// Softmax attention in bf16 by tiles: blocks of keys with a running softmax, as in attention.cc,
// both products by tiles. Dao et al. 2022, "FlashAttention".
#include "heddle/kernels/cpu/attention/attention_tiles.h"

#include <cstring>
#include <limits>

#include "heddle/kernels/cpu/attention/attention_ahead.h"
#include "heddle/kernels/cpu/attention/attention_pairs.h"
#include "heddle/kernels/cpu/attention/attention_plan.h"

namespace heddle::cpu {

namespace {
bool is_bf16(const Rows& x) { return x.dtype == DType::bf16; }
}  // namespace

bool goes_by_tiles(const AttentionArgs& args) {
  return is_bf16(args.q) && is_bf16(args.k) && is_bf16(args.v) && is_bf16(args.o) &&
         args.scale > 0 && (args.bias.values == nullptr || args.bias.is_by_pairs()) && has_tiles();
}
bool goes_by_tiles(const AttentionBackwardArgs& args) {
  return goes_by_tiles(args.forward) && is_bf16(args.d_o) && is_bf16(args.dq) && is_bf16(args.dk) &&
         is_bf16(args.dv);
}

#if !defined(__x86_64__)
void attention_tiles(const AttentionArgs&) {}
#else
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512vl,avx512bf16")

namespace {

constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

constexpr int64_t kKeyBlock = kTileKeyBlock;
// Queries that meet a block together: two tiles. Scores of kQueries by kKeyBlock take 8 KB: what is
// read and written at every step has to stay in the first cache.
constexpr int64_t kQueries = 32;
// Free to change: keys whose packed forms are held, queries of an item of work.
constexpr int64_t kHeldKeys = 1024;
constexpr int64_t kItemQueries = 512;

constexpr int64_t kBlockTiles = kKeyBlock / kTileRows, kBlockInner = kKeyBlock / kTileInner;

// Up to 16 queries of a step: scores in tiles, weights in their place.
struct Rows16 {
  char* tile;           // the first; the next ones lie behind each other, each of two rows
  int64_t row, rows;    // queries from where on, how many
  int64_t block, keys;  // where the keys begin, how many
  bool all_seen;        // kKeyBlock keys, all seen by all
  alignas(64) uint32_t mask[kBlockInner][kTileRows];  // else: those that are seen, 32 bits each

  __m512 score(int64_t i, int64_t t) const {
    return _mm512_load_ps(tile + t * 2 * kTileBytes + i * 64);
  }
  void put(int64_t i, int64_t pair, __m512i weights) const {
    _mm512_store_si512(tile + pair * 4 * kTileBytes + i * 64, weights);
  }
};

// One head of a range of queries of a segment.
struct Forward : HeadItem {
  const AttentionArgs& args;
  const WeightDropout& dropout;
  const PairMatrices& pairs;  // the bias divided by the scale, by query
  RowsAhead& ahead;           // of the next item
  const int64_t n;            // queries
  const int64_t inner;        // tiles of a head as inner dimension
  const int64_t columns;      // tiles of a head as columns
  const float factor;         // of the scores
  Tiles q;                    // left [queries, head_dim]
  Tiles k;                    // right [head_dim, kHeldKeys]
  Tiles v;                    // right [kHeldKeys, head_dim]
  Tiles s;                    // sums [kQueries, kKeyBlock]: scores
  Tiles p;                    // left [kQueries, kKeyBlock]: weights, in the place of the scores
  Tiles o;                    // sums [queries, head_dim]: weighted values
  float* most;                // [queries]: running maximum of the scores
  float* sum;                 // [queries]: running sum of weights
  alignas(64) float shrink[kTileRows];  // what earlier sums are to be multiplied by
  // The kept weights of a step's queries and of the blocks that share their random numbers.
  alignas(64) uint32_t kept[kDropoutKeys / kTileInner][kQueries];
  int64_t drawn;                          // which of such blocks they are of, or -1
  alignas(64) int32_t orders[kKeyBlock];  // of the keys of a block
  uint32_t started = 0;                   // a bit for each step's queries that have sums

  Forward(const AttentionArgs& a, const WeightDropout& d, const PairMatrices& bias,
          const AttentionItem& i, RowsAhead& next);
  void run();
  void pack_keys(int64_t first, int64_t count);
  // Of queries from `row` on, at most `count`.
  Sight sight(int64_t row, int64_t count) const {
    return sizes.sight(item.q_begin + row, item.q_begin + std::min(row + count, n));
  }
  void step(int64_t row, int64_t held, int64_t block, int64_t keys);
  void add_pairs(int64_t row, int64_t block, int64_t keys);
  void weights(int64_t row, int64_t block, int64_t keys, bool has_sums);
  void highest(const Rows16& at, __m512 part[kTileRows]) const;
  void exponentials(const Rows16& at, __m512 part[kTileRows]) const;
  bool all_see(int64_t row, int64_t block) const;
  __m512i seen(int64_t row, int64_t block, int64_t keys, int64_t key) const;
  __m512i in_range(int64_t row, int64_t key) const;
  void draw(int64_t row, int64_t block);
  void shrink_sums(int64_t row);
  void finish();
};

Forward::Forward(const AttentionArgs& a, const WeightDropout& d, const PairMatrices& bias,
                 const AttentionItem& i, RowsAhead& next)
    : HeadItem(a, i),
      args(a),
      dropout(d),
      pairs(bias),
      ahead(next),
      n(i.q_end - i.q_begin),
      inner(inner_tiles_of(a.head_dim)),
      columns(tiles_of(a.head_dim)),
      factor(a.scale * kLog2E) {
  const int64_t keys_a_query = (item.k_end - item.k_begin) / (args.causal ? 2 : 1);
  ahead.spread(n * (keys_a_query / kKeyBlock + 1));
  const int64_t rows = tiles_of(n),
                held = inner_tiles_of(std::min(kHeldKeys, item.k_end - item.k_begin));
  TileScratch memory(2 * kBlockTiles + rows * (inner + columns) + held * (2 * inner + columns),
                     2 * rows * kTileRows);
  s = memory.columns(2, kBlockTiles);
  p = {s.data, s.row, 2 * s.column};
  q = memory.rows(rows, inner);
  o = memory.rows(rows, columns);
  most = memory.numbers<float>(rows * kTileRows);
  sum = memory.numbers<float>(rows * kTileRows);
  k = memory.columns(inner, 2 * held);
  v = memory.rows(held, columns);
}

// Whether 16 queries see all of a block of kKeyBlock keys.
inline bool Forward::all_see(int64_t row, int64_t block) const {
  if (!sizes.has_ranges()) return sizes.limit(item.q_begin + row) >= block + kKeyBlock;
  return sight(row, kTileRows).holds(sizes.orders(block, block + kKeyBlock));
}

// seen() by ranges.
inline __m512i Forward::in_range(int64_t row, int64_t key) const {
  alignas(64) uint32_t bits[kTileRows] = {};
  const __m512i low = _mm512_load_si512(orders + key), high = _mm512_load_si512(orders + key + 16);
  for (int64_t i = 0; i < std::min(kTileRows, n - row); ++i) {
    const __m512i first = _mm512_set1_epi32(sizes.first(item.q_begin + row + i));
    const __m512i limit = _mm512_set1_epi32(sizes.limit(item.q_begin + row + i));
    const auto seen_of = [&](__m512i order) {
      return _mm512_mask_cmplt_epi32_mask(_mm512_cmpge_epi32_mask(order, first), order, limit);
    };
    bits[i] = _mm512_kunpackw(seen_of(high), seen_of(low));
  }
  return _mm512_load_si512(bits);
}

// The keys from `key` of the block on that each of 16 queries sees, as 32 bits.
inline __m512i Forward::seen(int64_t row, int64_t block, int64_t keys, int64_t key) const {
  if (sizes.has_ranges()) return in_range(row, key);
  const __m512i lane = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  const __m512i one = _mm512_set1_epi32(1);
  __m512i count = _mm512_set1_epi32(static_cast<int>(keys - key));
  if (args.causal) {
    const int64_t first = item.q_begin + row + 1 + sizes.keys - sizes.queries - block - key;
    const auto limit = static_cast<int>(std::clamp<int64_t>(first, -kTileRows, kKeyBlock));
    count = _mm512_min_epi32(count, _mm512_add_epi32(_mm512_set1_epi32(limit), lane));
  }
  // A shift by 32 and more gives 0, and 0 - 1 is all ones.
  count = _mm512_max_epi32(count, _mm512_setzero_si512());
  return _mm512_sub_epi32(_mm512_sllv_epi32(one, count), one);
}

// Which weights of up to 16 queries are kept, of kDropoutKeys from `block` on.
void Forward::draw(int64_t row, int64_t block) {
  const int64_t rows = std::min(kTileRows, n - row), first = item.q_begin + row;
  const int64_t end = sizes.has_ranges() ? item.k_end : sizes.limit(first + rows - 1);
  const int64_t keys = std::min(kDropoutKeys, end - block);
  for (int64_t i = 0; i < rows; ++i) {
    if (i % 4 == 0) stay_awake();
    dropout.kept_of_row(item.head, sizes.q_first + first + i, block, keys,
                        &kept[0][row % kQueries + i], kQueries);
  }
}

// Lane by lane, the highest score of up to 16 queries.
inline void Forward::highest(const Rows16& at, __m512 part[kTileRows]) const {
  const __m512 lowest = _mm512_set1_ps(kMinusInfinity);
  for (int64_t i = at.all_seen ? at.rows : 0; i < kTileRows; ++i) part[i] = lowest;
  if (at.all_seen) {
    for (int64_t i = 0; i < at.rows; ++i) {
      part[i] = _mm512_max_ps(_mm512_max_ps(at.score(i, 0), at.score(i, 1)),
                              _mm512_max_ps(at.score(i, 2), at.score(i, 3)));
    }
    return;
  }
  for (int64_t t = 0; t < tiles_of(at.keys); ++t) {
    const int shift = t % 2 * 16;
    for (int64_t i = 0; i < at.rows; ++i) {
      const auto m = static_cast<__mmask16>(at.mask[t / 2][i] >> shift);
      part[i] = _mm512_mask_max_ps(part[i], m, part[i], at.score(i, t));
    }
  }
}

// Scores become weights, 2^(score - maximum); `part` gets their sums, lane by lane.
inline void Forward::exponentials(const Rows16& at, __m512 part[kTileRows]) const {
  const __m512 f = _mm512_set1_ps(factor);
  const float* const highs = most + at.row;
  const auto weight = [&](__m512 high, int64_t i, int64_t t) {
    return exp2_weight(_mm512_fmsub_ps(at.score(i, t), f, high));
  };
  const bool drops = dropout.is_on();
  const uint32_t(*keep)[kQueries] = kept + at.block % kDropoutKeys / kTileInner;
  const int64_t first = at.row % kQueries;
  for (int64_t i = at.all_seen ? at.rows : 0; i < kTileRows; ++i) part[i] = _mm512_setzero_ps();
  for (int64_t i = 0; i < at.rows && at.all_seen; ++i) {
    ahead.fetch_some();
    const __m512 m = _mm512_set1_ps(highs[i]);
    const __m512 a = weight(m, i, 0), b = weight(m, i, 1);
    const __m512 c = weight(m, i, 2), d = weight(m, i, 3);
    part[i] = _mm512_add_ps(_mm512_add_ps(_mm512_add_ps(a, b), c), d);
    at.put(i, 0, drops ? to_bf16(keep[0][first + i], a, b) : to_bf16(a, b));
    at.put(i, 1, drops ? to_bf16(keep[1][first + i], c, d) : to_bf16(c, d));
  }
  for (int64_t pair = 0; pair < inner_tiles_of(at.keys) && !at.all_seen; ++pair) {
    const bool has_second = at.keys - pair * kTileInner > kTileRows;
    for (int64_t i = 0; i < at.rows; ++i) {
      if (pair == 0) ahead.fetch_some();
      const __m512 high = _mm512_set1_ps(highs[i]);
      const uint32_t m = at.mask[pair][i];
      const __m512 a = _mm512_maskz_mov_ps(static_cast<__mmask16>(m), weight(high, i, 2 * pair));
      __m512 b = _mm512_setzero_ps();
      if (has_second) {
        b = _mm512_maskz_mov_ps(static_cast<__mmask16>(m >> 16), weight(high, i, 2 * pair + 1));
      }
      part[i] = _mm512_add_ps(_mm512_add_ps(part[i], a), b);
      at.put(i, pair, to_bf16(drops ? keep[pair][first + i] : ~0u, a, b));
    }
  }
}

// Scores of up to 16 queries from `row` on become weights; earlier sums are made to fit.
void Forward::weights(int64_t row, int64_t block, int64_t keys, bool has_sums) {
  stay_awake();
  Rows16 at{.tile = s.at(row % kQueries / kTileRows, 0),
            .row = row,
            .rows = std::min(kTileRows, n - row),
            .block = block,
            .keys = keys,
            .all_seen = keys == kKeyBlock && all_see(row, block),
            .mask = {}};
  for (int64_t c = 0; c < kBlockInner && !at.all_seen; ++c) {
    _mm512_store_si512(at.mask[c], seen(row, block, keys, c * kTileInner));
  }
  __m512 part[kTileRows];
  highest(at, part);
  const __m512 before = _mm512_load_ps(most + row);
  const __m512 now =
      _mm512_max_ps(before, _mm512_mul_ps(combine_lanes<Maximum>(part), _mm512_set1_ps(factor)));
  _mm512_store_ps(most + row, now);
  stay_awake();
  exponentials(at, part);
  // Where nothing is seen yet both are -inf: the difference would be NaN.
  const __mmask16 changes = _mm512_cmp_ps_mask(before, now, _CMP_NEQ_UQ);
  const __m512 one = _mm512_set1_ps(1);
  const __m512 less = _mm512_mask_mov_ps(one, changes, exp2_weight(_mm512_sub_ps(before, now)));
  _mm512_store_ps(shrink, less);
  const __m512 total = _mm512_fmadd_ps(_mm512_load_ps(sum + row), less, combine_lanes<Sum>(part));
  _mm512_store_ps(sum + row, total);
  stay_awake();
  if (has_sums && changes != 0) shrink_sums(row);
}

// Earlier sums of up to 16 queries from `row` on, for the new maxima.
void Forward::shrink_sums(int64_t row) {
  for (int64_t i = 0; i < std::min(kTileRows, n - row); ++i) {
    if (shrink[i] == 1) continue;
    const __m512 f = _mm512_set1_ps(shrink[i]);
    for (int64_t c = 0; c < columns; ++c) {
      char* at = o.at(row / kTileRows, c) + i * 64;
      _mm512_store_ps(at, _mm512_mul_ps(_mm512_load_ps(at), f));
    }
  }
}

// Scores of up to 16 queries from `row` on gain what their pairs with the keys of a block give.
void Forward::add_pairs(int64_t row, int64_t block, int64_t keys) {
  const int64_t rows = std::min(kTileRows, n - row);
  const float* from = pairs.head(item.head) + (item.q_begin + row) * pairs.stride() + block;
  for (int64_t i = 0; i < rows; ++i, from += pairs.stride()) {
    for (int64_t t = 0; t < tiles_of(keys); ++t) {
      char* at = s.at(row % kQueries / kTileRows, t) + i * 64;
      const __m512 bias = _mm512_loadu_ps(from + t * kTileRows);
      _mm512_store_ps(at, _mm512_add_ps(_mm512_load_ps(at), bias));
    }
  }
}

// Up to kQueries queries from `row` on against the first `keys` keys of a block; `held` is its
// place among the held keys.
void Forward::step(int64_t row, int64_t held, int64_t block, int64_t keys) {
  const int64_t rows = tiles_of(std::min(kQueries, n - row));
  multiply_tiles({.left = q.from(row / kTileRows, 0),
                  .right = k.from(0, held / kTileRows),
                  .sum = s,
                  .rows = rows,
                  .columns = tiles_of(keys),
                  .inner = inner});
  const uint32_t bit = uint32_t{1} << (row / kQueries);
  const bool has_sums = (started & bit) != 0, draws = drawn != block / kDropoutKeys;
  started |= bit;
  drawn = block / kDropoutKeys;
  if (sizes.has_ranges()) sizes.copy_orders(block, keys, kKeyBlock, orders);
  for (int64_t r = 0; r < rows; ++r) {
    const int64_t at = row + r * kTileRows;
    if (dropout.is_on() && draws) draw(at, drawn * kDropoutKeys);
    if (args.bias.is_by_pairs()) add_pairs(at, block, keys);
    weights(at, block, keys, has_sums);
  }
  multiply_tiles({.left = p,
                  .right = v.from(held / kTileInner, 0),
                  .sum = o.from(row / kTileRows, 0),
                  .rows = rows,
                  .columns = columns,
                  .inner = inner_tiles_of(keys),
                  .accumulate = has_sums});
}

// Weighted sums become means.
void Forward::finish() {
  const int64_t first = sizes.q_first + item.q_begin;
  const __m512 lowest = _mm512_set1_ps(kMinusInfinity);
  for (int64_t row = 0; row < n; row += kTileRows) {
    const __m512 high = _mm512_load_ps(most + row), total = _mm512_load_ps(sum + row);
    const __mmask16 sees = _mm512_cmp_ps_mask(high, lowest, _CMP_NEQ_UQ);
    if (args.lse) {
      alignas(64) float lse[kTileRows];
      const __m512 log = _mm512_add_ps(high, log2_positive(total));
      _mm512_store_ps(lse, _mm512_mask_mul_ps(lowest, sees, log, _mm512_set1_ps(kLn2)));
      float* to = args.lse + (first + row) * args.heads + item.head;
      for (int64_t i = 0; i < std::min(kTileRows, n - row); ++i) to[i * args.heads] = lse[i];
    }
    const __m512 scale = _mm512_set1_ps(dropout.scale());
    _mm512_store_ps(sum + row, _mm512_maskz_div_ps(sees, scale, total));
  }
  store_rows(o, n, sum, 1, args.o, first, column, args.head_dim);
}

void Forward::pack_keys(int64_t first, int64_t count) {
  const int32_t* index = args.key_rows ? args.key_rows + sizes.k_first + first : nullptr;
  const int64_t row = sizes.k_first + first;
  stay_awake();
  pack_right_transposed({args.k, shared, args.head_dim, row, count, index}, k);
  stay_awake();
  pack_right({args.v, shared, args.head_dim, row, count, index}, v);
}

void Forward::run() {
  std::fill_n(most, tiles_of(n) * kTileRows, kMinusInfinity);
  std::fill_n(sum, tiles_of(n) * kTileRows, 0.0f);
  pack_left({args.q, column, args.head_dim, sizes.q_first + item.q_begin, n}, q);
  for (int64_t first = item.k_begin; first < item.k_end; first += kHeldKeys) {
    const int64_t end = std::min(first + kHeldKeys, item.k_end);
    pack_keys(first, end - first);
    for (int64_t row = 0; row < n; row += kQueries) {
      const Sight queries = sight(row, kQueries);
      drawn = -1;
      for (int64_t block = first; block < end; block += kKeyBlock) {
        const int64_t count = std::min(kKeyBlock, end - block);
        const int64_t keys = sizes.seen(queries, sizes.orders(block, block + count), block, count);
        if (keys > 0) step(row, block - first, block, keys);
      }
    }
  }
  for (int64_t row = 0; row < n; row += kQueries) {  // no product began those that see no key
    if ((started >> (row / kQueries) & 1) != 0) continue;
    const int64_t rows = tiles_of(std::min(kQueries, n - row));
    std::memset(o.at(row / kTileRows, 0), 0, static_cast<size_t>(rows * columns * kTileBytes));
  }
  stay_awake();
  ahead.fetch_rest();
  finish();
  stay_awake();
}

}  // namespace

void attention_tiles(const AttentionArgs& args) {
  if (is_single(args)) return attention_single(args);
  AttentionPlan& plan = attention_plan(kTileGroupWork);
  plan_forward(plan, args, kItemQueries, {.queries = 16, .keys = 16});
  const WeightDropout dropout(args.dropout);
  const PairMatrices pairs = pair_bias(args, false, 1 / args.scale);
  plan.run([&](const ItemGroup& group) {
    begin_tiles();
    for (const AttentionItem& item : group) {
      RowsAhead next = rows_of(args, next_rows_of(args, group, item));
      Forward(args, dropout, pairs, item, next).run();
    }
    end_tiles();
  });
}

#pragma GCC pop_options
#endif

}  // namespace heddle::cpu
