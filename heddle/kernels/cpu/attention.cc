// Softmax attention of packed sequences, tile by tile with a running softmax: the matrix of weights
// never exists. Dao et al. 2022, "FlashAttention"; Milakov and Gimelshein 2018 for the running sum.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "heddle/kernels/cpu/attention.cc"
#include <cmath>
#include <limits>

#include "heddle/kernels/cpu/cpu.h"
#include "heddle/kernels/cpu/targets.h"
// after targets.h
#include "hwy/foreach_target.h"
// after foreach_target.h
#include "heddle/kernels/cpu/attention-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heddle::cpu::HWY_NAMESPACE {
namespace {

constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

// One head of a range of queries of a segment, with the memory of its tiles.
struct ForwardItem {
  const AttentionArgs& args;
  const AttentionItem& item;
  const SegmentSizes sizes;
  const int64_t column;  // where the head starts
  const int64_t stride;  // of packed rows
  float *q, *o;          // [queries, stride]: scaled queries, sums of weighted values
  float *kt, *v;         // [head_dim, kKeyTile] and [kKeyTile, stride]: a tile of keys and values
  float* s;              // [kRowBlock, kKeyTile]: scores, then weights
  float *most, *sum;     // [queries]: running maximum, running sum of exponentials

  ForwardItem(const AttentionArgs& a, const AttentionItem& i)
      : args(a),
        item(i),
        sizes(a, i.segment),
        column(i.head * a.head_dim),
        stride(padded16(a.head_dim)) {
    const int64_t n = item.q_end - item.q_begin;
    AttentionScratch memory((2 * n + kKeyTile + kKeyTile) * stride + kRowBlock * kKeyTile +
                            2 * padded16(n));
    q = memory.take(n * stride);
    o = memory.take(n * stride);
    kt = memory.take(stride * kKeyTile);
    v = memory.take(stride * kKeyTile);
    s = memory.take(kRowBlock * kKeyTile);
    most = memory.take(n);
    sum = memory.take(n);
  }

  void run();
  void block(int64_t row, int64_t rows, int64_t tile, int64_t visible);
  float softmax_row(int64_t row, int64_t in_block, int64_t tile, int64_t visible,
                    int64_t columns);
  void finish();
};

// Scores of one query become weights exp(score - maximum) (dropped ones: 0); returns the factor by
// which what was summed before shrinks.
float ForwardItem::softmax_row(int64_t row, int64_t in_block, int64_t tile, int64_t visible,
                               int64_t columns) {
  const F32 d;
  float* HWY_RESTRICT w = s + in_block * kKeyTile;
  if (visible <= 0) {
    for (int64_t c = 0; c < columns; c += kLanes) hn::Store(zero(), d, w + c);
    return 1;
  }
  const int64_t full = visible - visible % kLanes;
  const auto tail = hn::FirstN(d, static_cast<size_t>(visible - full));
  Vec high = splat(kMinusInfinity);
  for (int64_t c = 0; c < full; c += kLanes) high = hn::Max(high, hn::Load(d, w + c));
  if (full < visible) {
    high = hn::Max(high, hn::IfThenElse(tail, hn::Load(d, w + full), splat(kMinusInfinity)));
  }
  const float before = most[row];
  const float now = std::max(before, max_lanes(high));
  const Vec shift = splat(now);
  Vec total = zero();
  for (int64_t c = 0; c < full; c += kLanes) {
    const Vec e = exp_vec(hn::Sub(hn::Load(d, w + c), shift));
    total = hn::Add(total, e);
    hn::Store(e, d, w + c);
  }
  if (full < visible) {
    const Vec e = hn::IfThenElseZero(tail, exp_vec(hn::Sub(hn::Load(d, w + full), shift)));
    total = hn::Add(total, e);
    hn::Store(e, d, w + full);
  }
  for (int64_t c = (visible + kLanes - 1) / kLanes * kLanes; c < columns; c += kLanes) {
    hn::Store(zero(), d, w + c);
  }
  if (args.dropout.p > 0) {
    DropoutRow dropout(args.dropout, sizes.q_first + item.q_begin + row,
                       static_cast<uint32_t>(item.head));
    for (int64_t c = 0; c < visible; c += kLanes) {
      const auto dropped = dropout.dropped(tile + c);
      hn::Store(hn::IfThenZeroElse(dropped, hn::Load(d, w + c)), d, w + c);
    }
  }
  const float shrink =
      now == before || tile == 0 ? 1.0f : hn::GetLane(exp_vec(splat(before - now)));
  most[row] = now;
  sum[row] = sum[row] * shrink + sum_lanes(total);
  return shrink;
}

// Up to kRowBlock queries against one tile; the last of them sees `visible` of its keys.
void ForwardItem::block(int64_t row, int64_t rows, int64_t tile, int64_t visible) {
  const F32 d;
  const int64_t columns = padded16(visible);
  product({q + row * stride, stride, 1, kt, kKeyTile, s, kKeyTile, rows, columns, args.head_dim,
           false});
  for (int64_t i = 0; i < rows; ++i) {
    const int64_t sees = sizes.visible(item.q_begin + row + i) - tile;
    const float shrink =
        softmax_row(row + i, i, tile, std::min(sees, visible), columns);
    if (shrink == 1) continue;
    float* to = o + (row + i) * stride;
    for (int64_t c = 0; c < stride; c += kLanes) {
      hn::Store(hn::Mul(hn::Load(d, to + c), splat(shrink)), d, to + c);
    }
  }
  product({s, kKeyTile, 1, v, stride, o + row * stride, stride, rows, args.head_dim, visible,
           tile > 0});
}

void ForwardItem::finish() {
  const int64_t n = item.q_end - item.q_begin;
  const float keep = args.dropout.p > 0 ? args.dropout.keep_scale() : 1.0f;
  for (int64_t i = 0; i < n; ++i) {
    const bool sees = sizes.visible(item.q_begin + i) > 0;
    const int64_t row = sizes.q_first + item.q_begin + i;
    store_row(o + i * stride, sees ? keep / sum[i] : 0.0f, args.o, row, column, args.head_dim);
    if (args.lse) {
      args.lse[row * args.heads + item.head] = sees ? most[i] + std::log(sum[i]) : kMinusInfinity;
    }
  }
}

void ForwardItem::run() {
  const int64_t n = item.q_end - item.q_begin;
  std::fill(most, most + n, kMinusInfinity);
  std::fill(sum, sum + n, 0.0f);
  pack_rows({args.q, column, sizes.q_first + item.q_begin}, n, args.head_dim, args.scale, stride,
            q);
  const int32_t* index = args.key_rows ? args.key_rows + sizes.k_first : nullptr;
  const int64_t keys = sizes.visible(item.q_end - 1);
  if (sizes.visible(item.q_begin) == 0) std::fill(o, o + n * stride, 0.0f);
  for (int64_t tile = 0; tile < keys; tile += kKeyTile) {
    const int64_t count = std::min(kKeyTile, keys - tile);
    const int32_t* at = index ? index + tile : nullptr;
    pack_columns({args.k, column, sizes.k_first + tile, at}, count, args.head_dim, kt);
    pack_rows({args.v, column, sizes.k_first + tile, at}, count, args.head_dim, 1, stride, v);
    for (int64_t row = 0; row < n; row += kRowBlock) {
      const int64_t rows = std::min(kRowBlock, n - row);
      const int64_t sees = sizes.visible(item.q_begin + row + rows - 1) - tile;
      if (sees > 0) block(row, rows, tile, std::min(sees, count));
    }
  }
  finish();
}

void attention_impl(const AttentionArgs& args) {
  AttentionPlan& plan = attention_plan();
  for (int64_t segment = 0; segment < args.segments; ++segment) {
    const SegmentSizes sizes(args, segment);
    for (int64_t head = 0; head < args.heads; ++head) {
      for (int64_t begin = 0; begin < sizes.queries; begin += kForwardQueries) {
        const int64_t end = std::min(begin + kForwardQueries, sizes.queries);
        const int64_t keys = sizes.visible(end - 1);
        // Packing a key costs about as much as eight queries against it.
        plan.add({segment, head, begin, end, 0, keys},
                 static_cast<double>((end - begin + 8) * (keys + 4) * args.head_dim * 2));
      }
    }
  }
  plan.run([&](const AttentionItem& item) { ForwardItem(args, item).run(); });
}

}  // namespace
}  // namespace heddle::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heddle::cpu {

HWY_EXPORT(attention_impl);

void attention(const AttentionArgs& args) { HWY_DYNAMIC_DISPATCH(attention_impl)(args); }

}  // namespace heddle::cpu
#endif
