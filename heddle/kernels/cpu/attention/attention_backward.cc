// Gradients of attention, tile by tile: weights are computed again from q, k and the log-sum-exp.
// Dao et al. 2022, "FlashAttention", appendix B.4. Every gradient is owned by one item of work and
// summed in order (dq over keys, dk and dv over queries), however the work is cut.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "heddle/kernels/cpu/attention/attention_backward.cc"
#include "heddle/kernels/cpu/attention/attention_ahead.h"
#include "heddle/kernels/cpu/attention/attention_pairs.h"
#include "heddle/kernels/cpu/attention/attention_tiles.h"
#include "heddle/kernels/cpu/targets.h"
#include "hwy/foreach_target.h"
// after foreach_target.h
#include "heddle/kernels/cpu/attention/attention-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heddle::cpu::HWY_NAMESPACE {
namespace {

// The gradient of a bias by distances, tile of keys by tile of keys: each is summed by the item
// that owns the gradients of the keys, and all in their order, so that no way of cutting the work
// changes a bit.
class BiasGradient {
 public:
  explicit BiasGradient(const AttentionBackwardArgs& args)
      : heads_(args.forward.heads),
        entries_(args.forward.bias.entries()),
        to_(args.forward.bias.is_by_pairs() ? nullptr : args.d_bias) {
    if (to_ == nullptr) return;
    const AttentionArgs& f = args.forward;
    for (int64_t i = 0; i < f.segments; ++i) {
      tiles_.push_back(tiles_.back() +
                       (f.k_offsets[i + 1] - f.k_offsets[i] + kKeyTile - 1) / kKeyTile);
    }
    parts_.resize(static_cast<size_t>(tiles_.back() * heads_ * entries_));
  }
  /// [entries] zeros: the part of a head and a tile; null if there is no bias.
  float* part(const AttentionItem& item, int64_t tile) {
    if (to_ == nullptr) return nullptr;
    const int64_t at = tiles_[static_cast<size_t>(item.segment)] + tile / kKeyTile;
    return parts_.data() + (at * heads_ + item.head) * entries_;
  }
  void sum() const {
    for (int64_t i = 0; to_ != nullptr && i < heads_ * entries_; ++i) {
      double total = 0;
      for (int64_t t = 0; t < tiles_.back(); ++t) {
        total += static_cast<double>(parts_[static_cast<size_t>(t * heads_ * entries_ + i)]);
      }
      to_[i] = static_cast<float>(total);
    }
  }

 private:
  int64_t heads_, entries_;
  float* to_;
  std::vector<int64_t> tiles_{0};  // before each segment
  std::vector<float> parts_;
};

// One head of a range of queries and of keys of a segment, with the memory of its tiles.
struct BackwardItem : HeadItem {
  const AttentionBackwardArgs& args;
  const AttentionArgs& forward;
  const int64_t width;   // of a head
  const int64_t stride;  // of packed rows
  const float keep_scale;
  float* dq;           // [queries, stride]
  float* dot;          // [queries]: sum of d_o * o
  float *q, *g;        // [kBackwardQueries, stride]: scaled queries, d_o
  float *kt, *vt;      // [head_dim, kKeyTile]: a tile of keys and values
  float *k, *dk, *dv;  // [kKeyTile, stride]
  float *p, *ds;       // [kBackwardQueries, kKeyTile]: weights, gradients of the scores
  int32_t* order;      // [kKeyTile]: of the keys of the tile
  BiasGradient& d_bias;
  const PairMatrices& pairs;  // the bias, by query
  float* d_pairs;             // its gradient: of the head, rows as those of `pairs`; or null

  BackwardItem(const AttentionBackwardArgs& a, const AttentionItem& i, BiasGradient& b,
               const PairMatrices& bias, float* to_pairs)
      : HeadItem(a.forward, i),
        args(a),
        forward(a.forward),
        width(a.forward.head_dim),
        stride(padded16(width)),
        keep_scale(a.forward.dropout.p > 0 ? a.forward.dropout.keep_scale() : 1.0f),
        d_bias(b),
        pairs(bias),
        d_pairs(to_pairs) {
    const int64_t n = item.q_end - item.q_begin;
    const int64_t dq_rows = item.wants_dq ? n : 0;
    AttentionScratch memory((dq_rows + 2 * kBackwardQueries + 5 * kKeyTile) * stride + padded16(n) +
                                2 * kBackwardQueries * kKeyTile,
                            kKeyTile);
    dq = memory.take(dq_rows * stride);
    dot = memory.take(n);
    q = memory.take(kBackwardQueries * stride);
    g = memory.take(kBackwardQueries * stride);
    kt = memory.take(stride * kKeyTile);
    vt = memory.take(stride * kKeyTile);
    k = memory.take(kKeyTile * stride);
    dk = memory.take(kKeyTile * stride);
    dv = memory.take(kKeyTile * stride);
    p = memory.take(kBackwardQueries * kKeyTile);
    ds = memory.take(kBackwardQueries * kKeyTile);
    order = memory.take_integers(kKeyTile);
  }

  void run();
  void compute_dots();
  void key_tile(int64_t tile, int64_t count);
  template <bool kDrops, bool kHasRanges>
  void queries(int64_t begin, int64_t rows, int64_t tile, int64_t count, bool starts);
  template <bool kDrops, bool kHasRanges>
  void weights_row(int64_t query, int64_t row, int64_t tile, int64_t visible, int64_t columns);
  void add_bias_gradient(int64_t query, int64_t row, int64_t tile, int64_t columns, float* to);
  void add_pairs(int64_t query, int64_t tile, int64_t columns, float* to) const;
  void add_pairs_gradient(int64_t query, int64_t tile, int64_t columns, const float* from) const;
  // How many of `count` keys of the tile some queries see, from the first on.
  int64_t seen(int64_t query, int64_t n, int64_t tile, int64_t count) const {
    if (sizes.has_ranges()) return count;
    return std::min(sizes.limit(query + n - 1) - tile, count);
  }
  void add_key_gradients(int64_t begin, int64_t rows, int64_t tile, int64_t count, bool starts);
  void clear_key_gradients(int64_t begin, int64_t end) {
    std::fill(dk + begin * stride, dk + end * stride, 0.0f);
    std::fill(dv + begin * stride, dv + end * stride, 0.0f);
  }
};

// dot[i] = sum over the head's columns of d_o * o = sum over keys of weight * its gradient.
void BackwardItem::compute_dots() {
  for (int64_t i = 0; i < item.q_end - item.q_begin; ++i) {
    const int64_t row = sizes.q_first + item.q_begin + i;
    const auto o = at<AnyPtr>(forward.o, row, column);
    const auto d_o = at<AnyPtr>(args.d_o, row, column);
    Vec sum = zero();
    for_columns(width, [&](int64_t c, auto part) HWY_ATTR {
      sum = hn::MulAdd(load(offset(o, c), part), load(offset(d_o, c), part), sum);
    });
    dot[i] = sum_lanes(sum);
  }
}

// Scores in p become the weights that met the values (after dropout); gradients of those in ds
// become gradients of the scores.
template <bool kDrops, bool kHasRanges>
void BackwardItem::weights_row(int64_t query, int64_t row, int64_t tile, int64_t visible,
                               int64_t columns) {
  const F32 d;
  const int64_t q_row = sizes.q_first + query;
  float* HWY_RESTRICT weight = p + row * kKeyTile;
  float* HWY_RESTRICT gradient = ds + row * kKeyTile;
  const Vec lse = splat(forward.lse[q_row * forward.heads + item.head]);
  const Vec mean = splat(dot[query - item.q_begin]);
  const RangeOf range =
      kHasRanges ? RangeOf(sizes.first(query), sizes.limit(query)) : RangeOf(0, 0);
  HWY_ALIGN uint32_t words[4][16];
  const Vec scale = splat(keep_scale);
  const auto threshold = hn::Set(I32(), static_cast<int32_t>(forward.dropout.threshold()));
  if (kDrops && visible > 0) {
    philox16(static_cast<uint32_t>(tile / 128 * 16), forward.dropout.position[q_row],
             forward.dropout.sample[q_row], static_cast<uint32_t>(item.head), forward.dropout.key,
             words);
  }
  for (int64_t c = 0; c < columns; c += kLanes) {
    if (c >= visible) {
      hn::Store(zero(), d, weight + c);
      hn::Store(zero(), d, gradient + c);
      continue;
    }
    const auto seen = kHasRanges
                          ? range.seen(order + c)
                          : hn::FirstN(d, static_cast<size_t>(std::min(visible - c, kLanes)));
    const Vec e = exp_weight(hn::Sub(hn::Load(d, weight + c), lse));
    Vec used = e;
    Vec back = hn::Load(d, gradient + c);
    if (kDrops) {
      const VecU32 word = hn::Load(U32(), words[(tile % 128 + c) / 32] + c % 16);
      const auto dropped = dropped_lanes(word, c / 16, threshold);
      used = hn::IfThenZeroElse(dropped, hn::Mul(used, scale));
      back = hn::IfThenZeroElse(dropped, hn::Mul(back, scale));
    }
    hn::Store(hn::IfThenElseZero(seen, used), d, weight + c);
    hn::Store(hn::IfThenElseZero(seen, hn::Mul(e, hn::Sub(back, mean))), d, gradient + c);
  }
}

// The gradients of a query's scores go to the distances that they stand at: `to` is a part of the
// gradient of the bias.
void BackwardItem::add_bias_gradient(int64_t query, int64_t row, int64_t tile, int64_t columns,
                                     float* HWY_RESTRICT to) {
  const F32 d;
  const HeadBias bias(forward, item.head);
  HWY_ALIGN int32_t at[kLanes];
  for (int64_t c = 0; c < columns; c += kLanes) {
    const float* back = ds + row * kKeyTile + c;
    const Vec gradient = hn::Load(d, back);
    const int64_t distance = tile + c - sizes.position(query);
    if (distance >= bias.reach || distance + kLanes - 1 <= -bias.reach) {  // all count as one
      to[distance > 0 ? 2 * bias.reach : 0] += sum_lanes(gradient);
      continue;
    }
    hn::Store(bias.index<1>(distance), I32(), at);
    for (int64_t i = 0; i < kLanes; ++i) to[at[i]] += back[i];
  }
}

// to[c] += what the pair of the query and key tile + c gives.
void BackwardItem::add_pairs(int64_t query, int64_t tile, int64_t columns,
                             float* HWY_RESTRICT to) const {
  const float* from = pairs.head(item.head) + query * pairs.stride() + tile;
  for (int64_t c = 0; c < columns; c += kLanes) {
    hn::Store(hn::Add(hn::Load(F32(), to + c), hn::LoadU(F32(), from + c)), F32(), to + c);
  }
}

void BackwardItem::add_pairs_gradient(int64_t query, int64_t tile, int64_t columns,
                                      const float* HWY_RESTRICT from) const {
  float* to = d_pairs + query * pairs.stride() + tile;
  for (int64_t c = 0; c < columns; c += kLanes) {
    hn::StoreU(hn::Add(hn::LoadU(F32(), to + c), hn::Load(F32(), from + c)), F32(), to + c);
  }
}

// Queries [begin, begin + rows) of the segment, at most kBackwardQueries, against one tile.
template <bool kDrops, bool kHasRanges>
void BackwardItem::queries(int64_t begin, int64_t rows, int64_t tile, int64_t count, bool starts) {
  pack_rows({forward.q, column, sizes.q_first + begin}, rows, width, forward.scale, stride, q);
  pack_rows({args.d_o, column, sizes.q_first + begin}, rows, width, 1, stride, g);
  float* const to_bias = item.wants_dkv ? d_bias.part(item, tile) : nullptr;
  for (int64_t row = 0; row < rows; row += kRowBlock) {
    const int64_t n = std::min(kRowBlock, rows - row);
    const int64_t sees = seen(begin + row, n, tile, count);
    const int64_t columns = padded16(sees);
    float* s = p + row * kKeyTile;
    float* back = ds + row * kKeyTile;
    product({q + row * stride, stride, 1, kt, kKeyTile, s, kKeyTile, n, columns, width, false});
    product({g + row * stride, stride, 1, vt, kKeyTile, back, kKeyTile, n, columns, width, false});
    for (int64_t i = row; i < row + n; ++i) {
      const int64_t visible = kHasRanges ? sees : seen(begin + i, 1, tile, sees);
      if (forward.bias.is_by_pairs()) {
        add_pairs(begin + i, tile, columns, p + i * kKeyTile);
      } else if (forward.bias.values) {
        const int64_t distance = tile - sizes.position(begin + i);
        HeadBias(forward, item.head).add_to_row(distance, columns, p + i * kKeyTile);
      }
      weights_row<kDrops, kHasRanges>(begin + i, i, tile, visible, columns);
      if (to_bias) add_bias_gradient(begin + i, i, tile, columns, to_bias);
      if (d_pairs) add_pairs_gradient(begin + i, tile, columns, ds + i * kKeyTile);
    }
    if (item.wants_dq) {
      product({back, kKeyTile, 1, k, stride, dq + (begin - item.q_begin + row) * stride, stride, n,
               width, sees, tile > 0 || kHasRanges});
    }
  }
  if (item.wants_dkv) add_key_gradients(begin, rows, tile, count, starts);
}

// dk += ds^T q and dv += p^T d_o for the keys of the tile, from the first query that sees them;
// the first queries of all (`starts`) set them.
void BackwardItem::add_key_gradients(int64_t begin, int64_t rows, int64_t tile, int64_t count,
                                     bool starts) {
  for (int64_t key = 0; key < count; key += kRowBlock) {
    const int64_t n = std::min(kRowBlock, count - key);
    const int64_t first =
        sizes.has_ranges() ? 0 : std::max<int64_t>(sizes.first_query(tile + key) - begin, 0);
    if (first >= rows) {
      if (starts) clear_key_gradients(key, count);
      return;
    }
    const int64_t from = first * kKeyTile + key;
    product({ds + from, 1, kKeyTile, q + first * stride, stride, dk + key * stride, stride, n,
             width, rows - first, !starts});
    product({p + from, 1, kKeyTile, g + first * stride, stride, dv + key * stride, stride, n, width,
             rows - first, !starts});
  }
}

void BackwardItem::key_tile(int64_t tile, int64_t count) {
  const RowSource keys{forward.k, shared, sizes.k_first + tile};
  const RowSource values{forward.v, shared, sizes.k_first + tile};
  const Orders orders = sizes.orders(tile, tile + count);
  const Range seeing = sizes.queries_of(orders, {item.q_begin, item.q_end});
  if (seeing.size() > 0) {
    if (sizes.has_ranges()) sizes.copy_orders(tile, count, padded16(count), order);
    pack_columns(keys, count, width, 1, kKeyTile, kt);
    pack_columns(values, count, width, 1, kKeyTile, vt);
    if (item.wants_dq) pack_rows(keys, count, width, 1, stride, k);
  }
  const bool drops = forward.dropout.p > 0;
  const auto meet =
      sizes.has_ranges()
          ? (drops ? &BackwardItem::queries<true, true> : &BackwardItem::queries<false, true>)
          : (drops ? &BackwardItem::queries<true, false> : &BackwardItem::queries<false, false>);
  bool starts = true;
  for (int64_t begin = seeing.begin; begin < seeing.end; begin += kBackwardQueries) {
    const int64_t rows = std::min(kBackwardQueries, seeing.end - begin);
    if (sizes.has_ranges() && sizes.sight(begin, begin + rows).misses(orders)) continue;
    (this->*meet)(begin, rows, tile, count, starts);
    starts = false;
  }
  if (item.wants_dkv && starts) clear_key_gradients(0, count);
  if (!item.wants_dkv) return;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t row = sizes.k_first + tile + i;
    store_row(dk + i * stride, 1, args.dk, row, column, width);  // q is packed with its scale
    store_row(dv + i * stride, 1, args.dv, row, column, width);
  }
}

void BackwardItem::run() {
  const int64_t n = item.q_end - item.q_begin;
  if (item.wants_dq) {  // queries that see no key, or not the first one
    const bool is_all = sizes.keys == 0 || sizes.has_ranges();
    const int64_t unseeing = is_all ? n : sizes.first_query(0) - item.q_begin;
    std::fill(dq, dq + std::clamp<int64_t>(unseeing, 0, n) * stride, 0.0f);
  }
  compute_dots();
  for (int64_t tile = item.k_begin; tile < item.k_end; tile += kKeyTile) {
    key_tile(tile, std::min(kKeyTile, item.k_end - tile));
  }
  if (!item.wants_dq) return;
  for (int64_t i = 0; i < n; ++i) {
    store_row(dq + i * stride, forward.scale, args.dq, sizes.q_first + item.q_begin + i, column,
              width);
  }
}

// The gradients of a long sequence's head can be computed at once, or queries and keys apart: a
// third more work, in many items. Both give the same bits.
bool goes_at_once(const AttentionArgs& args, const SegmentSizes& sizes) {
  if (args.bias.is_by_pairs()) return true;  // see PairGradient
  constexpr int64_t kMostFloats = 1 << 20;   // of dq, in the memory of a thread
  const bool fits = sizes.queries * padded16(args.head_dim) <= kMostFloats;
  return fits && (sizes.keys <= kKeyTile || args.segments * args.heads >= 4 * num_threads());
}

void attention_backward_impl(const AttentionBackwardArgs& args) {
  const AttentionArgs& forward = args.forward;
  AttentionPlan& plan = attention_plan(pair_group_work(forward, kVectorGroupWork));
  BiasGradient d_bias(args);
  plan_backward(plan, forward, {kBackwardQueries, kKeyTile, 1, kKeyTile, {.queries = 8, .keys = 4}},
                [&](const SegmentSizes& sizes) { return goes_at_once(forward, sizes); });
  const PairMatrices pairs = pair_bias(forward, false);
  const PairGradient d_pairs(args, plan.groups());
  plan.run([&](const ItemGroup& group) {
    d_pairs.clear(group.number);
    for (const AttentionItem& item : group) {
      rows_of(args, next_rows_of(args.forward, group, item, kRowsAtOnce)).fetch_at_once();
      BackwardItem(args, item, d_bias, pairs, d_pairs.part(group.number, item.head)).run();
    }
  });
  d_bias.sum();
  d_pairs.write(false);
}

}  // namespace
}  // namespace heddle::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heddle::cpu {

HWY_EXPORT(attention_backward_impl);

void attention_backward(const AttentionBackwardArgs& args) {
  check(!args.forward.key_rows, ErrorKind::internal,
        "attention_backward: keys behind an index (key_rows) have no gradient");
  if (goes_by_tiles(args)) return attention_tiles_backward(args);
  HWY_DYNAMIC_DISPATCH(attention_backward_impl)(args);
}

}  // namespace heddle::cpu
#endif
