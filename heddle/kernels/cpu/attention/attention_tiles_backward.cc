// Gradients of attention in bf16 by tiles: weights are computed again from q, k and the
// log-sum-exp. Dao et al. 2022, "FlashAttention", appendix B.4. Scores lie key by key, a query in
// each lane: weights and gradients of scores are then factors of dv and dk as they are computed,
// and what belongs to a query (its log-sum-exp, its mean, its dropout) is a vector. Every gradient
// is owned by one item of work and summed in order, 32 queries or keys at a time from the segment's
// start, however the work is cut.
#include <cstring>

#include "heddle/kernels/cpu/attention/attention_ahead.h"
#include "heddle/kernels/cpu/attention/attention_pairs.h"
#include "heddle/kernels/cpu/attention/attention_plan.h"
#include "heddle/kernels/cpu/attention/attention_tiles.h"

namespace heddle::cpu {
#if !defined(__x86_64__)
void attention_tiles_backward(const AttentionBackwardArgs&) {}
#else
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512vl,avx512bf16")

namespace {

// All are free to change, by multiples of kStep.
constexpr int64_t kStep = kTileInner;    // keys or queries that are summed together
constexpr int64_t kKeyBlock = 128;       // keys whose packed forms are held, see draw()
constexpr int64_t kQueryBlock = 128;     // queries that meet them together
constexpr int64_t kSpan = 512;           // queries whose packed forms are held
constexpr int64_t kItemKeys = 512;       // of an item that has not all keys
constexpr int64_t kItemQueries = kSpan;  // of an item that has not all queries

constexpr int64_t kQueryTiles = kQueryBlock / kTileRows, kQueryInner = kQueryBlock / kTileInner;
constexpr int64_t kKeyTiles = kKeyBlock / kTileRows, kKeyInner = kKeyBlock / kTileInner;

// One head of a range of queries and of keys of a segment.
struct Backward : HeadItem {
  const AttentionBackwardArgs& args;
  const AttentionArgs& forward;
  const WeightDropout& dropout;
  const PairMatrices& pairs;  // the bias divided by the scale, by key
  float* const d_pairs;       // its gradient: of the head, rows as those of `pairs`; or null
  RowsAhead& ahead;           // of the next item
  const int64_t inner;        // tiles of a head as inner dimension
  const int64_t columns;      // tiles of a head as columns
  const float factor;         // of the scores
  // A span of queries: q and d_o as right matrices, both ways, and the sums of dq.
  Range span;
  Tiles q_across, g_across;  // right [head_dim, queries]
  Tiles q_along, g_along;    // right [queries, head_dim]
  Tiles dq;                  // sums [queries, head_dim]
  float *lse, *dot;          // [queries]: log-sum-exp / ln 2, sum of d_o * o
  int32_t *firsts, *limits;  // [queries]: their ranges
  uint32_t dq_started;       // a bit for each kStep queries that have sums
  // A block of keys.
  Range keys;
  Tiles k, v;     // left [kKeyBlock, head_dim]
  Tiles k_along;  // right [kKeyBlock, head_dim]
  // All keys of the item.
  Tiles dk, dv;       // sums [keys, head_dim]
  uint32_t* started;  // a number for each kStep keys, not 0: they have sums
  // A block of queries: kStep keys meet it at a time.
  Range block;
  Tiles s, back;             // sums [kStep, kQueryBlock]: scores, gradients of the weights
  Tiles p, ds;               // left [kStep, kQueryBlock]: weights, gradients of the scores
  Tiles ds_along;            // left [kQueryBlock, kKeyBlock]: the latter for all keys of the block
  Range seeing[kKeyInner];   // of the span: queries that see a key of a step, in steps
  Range steps[kQueryInner];  // of the keys that the queries of a step see
  uint32_t* kept;            // [kKeyInner, kQueryBlock]: the keys whose weight is kept

  Backward(const AttentionBackwardArgs& a, const WeightDropout& d, const PairMatrices& bias,
           float* to_pairs, const AttentionItem& i, RowsAhead& next);
  void run();
  bool find_queries();
  void pack_queries();
  void pack_keys();
  void visit(int64_t step, int64_t chunk);
  void query_block();
  void draw();
  void key_step(int64_t step);
  void add_pairs(int64_t step, int64_t from, int64_t to);
  void add_pairs_gradient(int64_t key, int64_t query, __mmask32 seen, __m512 low, __m512 high);
  template <bool kDrops, bool kWide>
  void weights(int64_t step, int64_t chunk);
  __mmask32 seen(int64_t key, int64_t query) const;
};

Backward::Backward(const AttentionBackwardArgs& a, const WeightDropout& d, const PairMatrices& bias,
                   float* to_pairs, const AttentionItem& i, RowsAhead& next)
    : HeadItem(a.forward, i),
      args(a),
      forward(a.forward),
      dropout(d),
      pairs(bias),
      d_pairs(to_pairs),
      ahead(next),
      inner(inner_tiles_of(a.forward.head_dim)),
      columns(tiles_of(a.forward.head_dim)),
      factor(a.forward.scale * kLog2E) {
  const int64_t calls = inner_tiles_of(item.q_end - item.q_begin) * (item.k_end - item.k_begin);
  ahead.spread(forward.causal ? calls / 2 : calls);
  const int64_t q_steps = inner_tiles_of(std::min(kSpan, item.q_end - item.q_begin));
  const int64_t key_tiles = item.wants_dkv ? 2 * inner_tiles_of(item.k_end - item.k_begin) : 0;
  TileScratch memory(q_steps * (4 * inner + 4 * columns) + kKeyTiles * 2 * inner +
                         kKeyInner * columns + 2 * key_tiles * columns + 4 * kQueryTiles +
                         4 * kQueryInner + kQueryTiles * kKeyInner,
                     4 * q_steps * kStep + kKeyInner * kQueryBlock + key_tiles);
  q_across = memory.columns(inner, 2 * q_steps), g_across = memory.columns(inner, 2 * q_steps);
  q_along = memory.rows(q_steps, columns), g_along = memory.rows(q_steps, columns);
  dq = memory.rows(2 * q_steps, columns);
  k = memory.rows(kKeyTiles, inner), v = memory.rows(kKeyTiles, inner);
  k_along = memory.rows(kKeyInner, columns);
  dk = memory.rows(key_tiles, columns), dv = memory.rows(key_tiles, columns);
  s = memory.columns(2, kQueryTiles), back = memory.columns(2, kQueryTiles);
  p = memory.columns(2, kQueryInner), ds = memory.columns(2, kQueryInner);
  ds_along = memory.rows(kQueryTiles, kKeyInner);
  lse = memory.numbers<float>(q_steps * kStep), dot = memory.numbers<float>(q_steps * kStep);
  kept = memory.numbers<uint32_t>(kKeyInner * kQueryBlock);
  firsts = memory.numbers<int32_t>(q_steps * kStep);
  limits = memory.numbers<int32_t>(q_steps * kStep);
  started = memory.numbers<uint32_t>(key_tiles);
  std::fill_n(started, key_tiles, 0);
}

// Which queries of the span see which keys of the block; false: none sees any.
bool Backward::find_queries() {
  bool is_seen = false;
  for (int64_t step = 0; step < keys.size(); step += kStep) {
    const int64_t begin = keys.begin + step;
    const Orders orders = sizes.orders(begin, std::min(begin + kStep, keys.end));
    Range q = sizes.queries_of(orders, span);
    if (q.size() > 0) {
      q = {q.begin / kStep * kStep, std::min((q.end + kStep - 1) / kStep * kStep, span.end)};
      is_seen = true;
    }
    seeing[step / kStep] = q;
  }
  return is_seen;
}

void Backward::pack_queries() {
  const int64_t width = forward.head_dim, first = sizes.q_first + span.begin;
  const TileSource q{forward.q, column, width, first, span.size()};
  const TileSource g{args.d_o, column, width, first, span.size()};
  pack_right_transposed(q, q_across);
  pack_right_transposed(g, g_across);
  if (item.wants_dkv) {
    pack_right(q, q_along);
    pack_right(g, g_along);
  }
  for (int64_t row = 0; row < span.size(); row += kTileRows) {
    // dot = sum over the head's columns of d_o * o = sum over keys of weight * its gradient.
    __m512 sum[kTileRows];
    alignas(64) float log[kTileRows] = {};
    for (int64_t i = 0; i < kTileRows; ++i) {
      sum[i] = _mm512_setzero_ps();
      if (row + i >= span.size()) continue;
      const uint16_t* o = forward.o.row<uint16_t>(first + row + i) + column;
      const uint16_t* d_o = args.d_o.row<uint16_t>(first + row + i) + column;
      for (int64_t c = 0; c < width; c += 32) {
        const __m512i x = _mm512_maskz_loadu_epi16(first_16bit(width - c), o + c);
        const __m512i y = _mm512_maskz_loadu_epi16(first_16bit(width - c), d_o + c);
        sum[i] =
            _mm512_dpbf16_ps(sum[i], reinterpret_cast<__m512bh>(x), reinterpret_cast<__m512bh>(y));
      }
      log[i] = forward.lse[(first + row + i) * forward.heads + item.head];
    }
    for (int64_t i = row; i < row + kTileRows && sizes.has_ranges(); ++i) {
      const int64_t query = std::min(span.begin + i, span.end - 1);
      firsts[i] = sizes.first(query), limits[i] = sizes.limit(query);
    }
    _mm512_store_ps(dot + row, combine_lanes<Sum>(sum));
    _mm512_store_ps(lse + row, _mm512_mul_ps(_mm512_load_ps(log), _mm512_set1_ps(kLog2E)));
  }
}

void Backward::pack_keys() {
  const int64_t first = sizes.k_first + keys.begin;
  const TileSource from{forward.k, shared, forward.head_dim, first, keys.size()};
  pack_left(from, k);
  pack_left({forward.v, shared, forward.head_dim, first, keys.size()}, v);
  if (item.wants_dq) pack_right(from, k_along);
}

// Which weights of the block of queries and the block of keys are kept.
void Backward::draw() {
  static_assert(kKeyBlock == kDropoutKeys);
  int64_t begin = block.end, end = block.begin;
  for (int64_t step = 0; step < inner_tiles_of(keys.size()); ++step) {
    if (seeing[step].size() == 0) continue;
    begin = std::min(begin, std::max(block.begin, seeing[step].begin));
    end = std::max(end, std::min(block.end, seeing[step].end));
  }
  for (int64_t i = begin; i < end; ++i) {
    if (i % 4 == 0) stay_awake();
    dropout.kept_of_row(item.head, sizes.q_first + i, keys.begin, keys.size(),
                        kept + i - block.begin, kQueryBlock);
  }
}

// Which of kStep queries of the span from `query` on see a key.
inline __mmask32 Backward::seen(int64_t key, int64_t query) const {
  if (!sizes.has_ranges()) return ~first_16bit(sizes.first_query(key) - query);
  const __m512i order = _mm512_set1_epi32(sizes.order(key));
  const auto seen_by = [&](int64_t at) {
    const __mmask16 begun = _mm512_cmpge_epi32_mask(order, _mm512_load_si512(firsts + at));
    return _mm512_mask_cmplt_epi32_mask(begun, order, _mm512_load_si512(limits + at));
  };
  const int64_t at = query - span.begin;
  return _mm512_kunpackw(seen_by(at + kTileRows), seen_by(at));
}

// Scores of kStep keys from `step` on with queries [from, to) of the block gain what their pairs
// give.
void Backward::add_pairs(int64_t step, int64_t from, int64_t to) {
  const int64_t count = std::min(kStep, keys.size() - step);
  for (int64_t j = 0; j < count; ++j) {
    const float* bias =
        pairs.head(item.head) + (keys.begin + step + j) * pairs.stride() + block.begin;
    for (int64_t q = from; q < to; q += kTileRows) {
      char* at = s.at(j / kTileRows, q / kTileRows) + j % kTileRows * 64;
      _mm512_store_ps(at, _mm512_add_ps(_mm512_load_ps(at), _mm512_loadu_ps(bias + q)));
    }
  }
}

// The gradients of a key's scores with kStep queries.
inline void Backward::add_pairs_gradient(int64_t key, int64_t query, __mmask32 seen, __m512 low,
                                         __m512 high) {
  float* to = d_pairs + key * pairs.stride() + query;
  const auto add = [](float* at, __mmask16 mask, __m512 x) {
    const __m512 before = _mm512_loadu_ps(at);
    _mm512_storeu_ps(at, _mm512_mask_add_ps(before, mask, before, x));
  };
  add(to, static_cast<__mmask16>(seen), low);
  add(to + kTileRows, static_cast<__mmask16>(seen >> 16), high);
}

// Scores and gradients of weights, of kStep keys and kStep queries (or half as many, if not kWide)
// from `chunk` of the block on, become weights and gradients of scores.
template <bool kDrops, bool kWide>
void Backward::weights(int64_t step, int64_t chunk) {
  const int64_t count = std::min(kStep, keys.size() - step), n = block.size() - chunk;
  const int64_t at = block.begin + chunk - span.begin;
  const __m512 f = _mm512_set1_ps(factor), times = _mm512_set1_ps(dropout.scale());
  const __m512 lse0 = _mm512_load_ps(lse + at), lse1 = _mm512_load_ps(lse + at + 16);
  const __m512 dot0 = _mm512_load_ps(dot + at), dot1 = _mm512_load_ps(dot + at + 16);
  const int64_t next = s.column * kTileBytes;  // the other 16 queries
  const uint32_t* draws = kept + step / kStep * kQueryBlock + chunk;
  const __m512i draws0 = _mm512_load_si512(draws), draws1 = _mm512_load_si512(draws + 16);
  __m512i key_bit = _mm512_set1_epi32(1);
  const __mmask32 there = first_16bit(n);
  for (int64_t j = 0; j < count; ++j) {
    const int64_t tile = j / kTileRows, row = j % kTileRows * 64;
    ahead.fetch_some();
    const char* score = s.at(tile, chunk / kTileRows) + row;
    const char* gradient = back.at(tile, chunk / kTileRows) + row;
    const __mmask32 seen_by = there & seen(keys.begin + step + j, block.begin + chunk);
    const __m512 e0 = exp2_weight(_mm512_fmsub_ps(_mm512_load_ps(score), f, lse0));
    __m512 d0 = _mm512_load_ps(gradient), d1 = _mm512_setzero_ps(), e1 = d1;
    if constexpr (kWide) {
      e1 = exp2_weight(_mm512_fmsub_ps(_mm512_load_ps(score + next), f, lse1));
      d1 = _mm512_load_ps(gradient + next);
    }
    __mmask32 used = seen_by;
    if constexpr (kDrops) {
      const __mmask16 kept0 = _mm512_test_epi32_mask(draws0, key_bit);
      const __mmask16 kept1 = _mm512_test_epi32_mask(draws1, key_bit);
      key_bit = _mm512_slli_epi32(key_bit, 1);
      used &= _mm512_kunpackw(kept1, kept0);
      d0 = _mm512_maskz_mul_ps(kept0, d0, times);
      d1 = _mm512_maskz_mul_ps(kept1, d1, times);
    }
    d0 = _mm512_mul_ps(e0, _mm512_sub_ps(d0, dot0));
    if constexpr (kWide) d1 = _mm512_mul_ps(e1, _mm512_sub_ps(d1, dot1));
    if (d_pairs) {
      add_pairs_gradient(keys.begin + step + j, block.begin + chunk, seen_by, d0, d1);
    }
    _mm512_store_si512(p.at(tile, chunk / kStep) + row, to_bf16(used, e0, e1));
    _mm512_store_si512(ds.at(tile, chunk / kStep) + row, to_bf16(seen_by, d0, d1));
  }
  if (!item.wants_dq) return;
  const int64_t rows = count > kTileRows ? kStep : kTileRows;
  for (int64_t j = count; j < rows; ++j) {
    _mm512_store_si512(ds.at(j / kTileRows, chunk / kStep) + j % kTileRows * 64,
                       _mm512_setzero_si512());
  }
  transpose_left(ds.from(0, chunk / kStep), rows, ds_along.from(chunk / kTileRows, step / kStep),
                 n);
}

// Notes that the queries of the block from `chunk` on meet a step of keys; what lies between this
// and the last step that they met becomes zero.
void Backward::visit(int64_t step, int64_t chunk) {
  Range& met = steps[chunk / kStep];
  if (met.size() == 0) met = {step, step};
  for (; met.end < step && item.wants_dq; ++met.end) {
    for (int64_t row = 0; row < kStep; row += kTileRows) {
      std::memset(ds_along.at((chunk + row) / kTileRows, met.end), 0, kTileBytes);
    }
  }
  met.end = step + 1;
}

// The block of queries against kStep keys of the block from `step` on.
void Backward::key_step(int64_t step) {
  const Range& queries = seeing[step / kStep];
  const int64_t from = std::max(queries.begin - block.begin, int64_t{0});
  const int64_t to = std::min(queries.end, block.end) - block.begin;
  if (from >= to) return;
  const int64_t in_span = block.begin - span.begin + from;
  TileProduct product{.left = k.from(step / kTileRows, 0),
                      .right = q_across.from(0, in_span / kTileRows),
                      .sum = s.from(0, from / kTileRows),
                      .rows = tiles_of(std::min(kStep, keys.size() - step)),
                      .columns = tiles_of(to - from),
                      .inner = inner};
  multiply_tiles(product);
  if (forward.bias.is_by_pairs()) add_pairs(step, from, to);
  product.left = v.from(step / kTileRows, 0);
  product.right = g_across.from(0, in_span / kTileRows);
  product.sum = back.from(0, from / kTileRows);
  multiply_tiles(product);
  for (int64_t chunk = from; chunk < to; chunk += kStep) {
    visit(step / kStep, chunk);
    const bool is_wide = block.size() - chunk > kTileRows;
    if (dropout.is_on()) {
      is_wide ? weights<true, true>(step, chunk) : weights<true, false>(step, chunk);
    } else {
      is_wide ? weights<false, true>(step, chunk) : weights<false, false>(step, chunk);
    }
  }
  if (!item.wants_dkv) return;
  const int64_t key_tile = (keys.begin + step - item.k_begin) / kTileRows;
  product = {.left = p.from(0, from / kStep),
             .right = g_along.from(in_span / kStep, 0),
             .sum = dv.from(key_tile, 0),
             .rows = product.rows,
             .columns = columns,
             .inner = inner_tiles_of(to - from),
             .accumulate = started[key_tile / 2] != 0};
  started[key_tile / 2] = 1;
  multiply_tiles(product);
  product.left = ds.from(0, from / kStep);
  product.right = q_along.from(in_span / kStep, 0);
  product.sum = dk.from(key_tile, 0);
  multiply_tiles(product);
}

void Backward::query_block() {
  std::fill_n(steps, kQueryInner, Range{});
  if (dropout.is_on()) draw();
  for (int64_t step = 0; step < keys.size(); step += kStep) key_step(step);
  if (!item.wants_dq) return;
  for (int64_t chunk = 0; chunk < block.size(); chunk += kStep) {
    const Range met = steps[chunk / kStep];
    if (met.size() == 0) continue;
    const int64_t at = block.begin + chunk - span.begin;
    const uint32_t bit = uint32_t{1} << (at / kStep);
    multiply_tiles({.left = ds_along.from(chunk / kTileRows, met.begin),
                    .right = k_along.from(met.begin, 0),
                    .sum = dq.from(at / kTileRows, 0),
                    .rows = tiles_of(std::min(kStep, block.size() - chunk)),
                    .columns = columns,
                    .inner = met.size(),
                    .accumulate = (dq_started & bit) != 0});
    dq_started |= bit;
  }
}

void Backward::run() {
  const Range all_queries{item.q_begin, item.q_end}, all_keys{item.k_begin, item.k_end};
  // Sums that no product begins: of queries that see no key, of keys that no query sees.
  const auto clear = [&](const Tiles& sums, int64_t step) {
    std::memset(sums.at(step * 2, 0), 0, static_cast<size_t>(2 * columns * kTileBytes));
  };
  span = all_queries.part(item.q_begin, kSpan);
  do {
    dq_started = 0;
    pack_queries();
    for (int64_t i = item.k_begin; i < item.k_end; i += kKeyBlock) {
      keys = all_keys.part(i, kKeyBlock);
      if (!find_queries()) continue;
      pack_keys();
      for (int64_t j = span.begin; j < span.end; j += kQueryBlock) {
        block = span.part(j, kQueryBlock);
        query_block();
      }
    }
    if (span.end == item.q_end) ahead.fetch_rest();
    if (item.wants_dq) {
      for (int64_t i = 0; i < inner_tiles_of(span.size()); ++i) {
        if ((dq_started >> i & 1) == 0) clear(dq, i);
      }
      store_rows(dq, span.size(), &forward.scale, 0, args.dq, sizes.q_first + span.begin, column,
                 forward.head_dim);
    }
    span = all_queries.part(span.end, kSpan);
  } while (span.size() > 0);
  if (!item.wants_dkv) return;
  for (int64_t i = 0; i < inner_tiles_of(all_keys.size()); ++i) {
    if (started[i] == 0) clear(dk, i), clear(dv, i);
  }
  const int64_t row = sizes.k_first + item.k_begin;
  const float keep = dropout.scale();
  store_rows(dk, all_keys.size(), &forward.scale, 0, args.dk, row, column, forward.head_dim);
  store_rows(dv, all_keys.size(), &keep, 0, args.dv, row, column, forward.head_dim);
}

// The gradients of a long sequence's head can be computed at once, or queries and keys apart: two
// fifths more work, in many items. Both give the same bits.
bool goes_at_once(const AttentionArgs& args, const SegmentSizes& sizes) {
  if (args.bias.is_by_pairs()) return true;  // see PairGradient
  constexpr int64_t kMostBytes = 16 << 20;   // of dk and dv, in the memory of a thread
  const bool fits = sizes.keys * args.head_dim * 8 <= kMostBytes;
  const bool is_small = sizes.keys <= kItemKeys && sizes.queries <= kItemQueries;
  return fits && (is_small || args.segments * args.heads >= 4 * num_threads());
}

}  // namespace

void attention_tiles_backward(const AttentionBackwardArgs& args) {
  AttentionPlan& plan = attention_plan(pair_group_work(args.forward, kTileGroupWork));
  plan_backward(plan, args.forward,
                {kItemQueries, kItemKeys, kStep, kKeyBlock, {.queries = 16, .keys = 16}},
                [&](const SegmentSizes& sizes) { return goes_at_once(args.forward, sizes); });
  const WeightDropout dropout(args.forward.dropout);
  const PairMatrices pairs = pair_bias(args.forward, true, 1 / args.forward.scale);
  const PairGradient d_pairs(args, plan.groups());
  plan.run([&](const ItemGroup& group) {
    d_pairs.clear(group.number);
    begin_tiles();
    for (const AttentionItem& item : group) {
      RowsAhead next = rows_of(args, next_rows_of(args.forward, group, item));
      Backward(args, dropout, pairs, d_pairs.part(group.number, item.head), item, next).run();
    }
    end_tiles();
  });
  d_pairs.write(true);
}

#pragma GCC pop_options
#endif

}  // namespace heddle::cpu
