// Sums over rows, columns and everything, and softmax; every sum has a fixed order.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "heddle/kernels/cpu/reduce.cc"
#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>

#include "heddle/base/parallel.h"
#include "heddle/kernels/cpu/row_chunks.h"
#include "heddle/kernels/cpu/scratch.h"
#include "heddle/kernels/cpu/targets.h"
#include "heddle/kernels/reduce.h"
#include "hwy/foreach_target.h"
// after foreach_target.h
#include "heddle/kernels/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heddle::cpu::HWY_NAMESPACE {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// y[c] = sum of x[begin .. end)[c], rows in order, for the `count` vectors from column c on.
template <class T, int kVectors>
HWY_INLINE void sum_tile(const Rows& x, int64_t begin, int64_t end, int64_t c, float* y) {
  Vec sum[kVectors];
  for (int i = 0; i < kVectors; ++i) sum[i] = zero();
  for (int64_t r = begin; r < end; ++r) {
    const auto p = at<T>(x, r, c);
    for (int i = 0; i < kVectors; ++i) {
      sum[i] = hn::Add(sum[i], load(offset(p, i * lanes()), Full{}));
    }
  }
  for (int i = 0; i < kVectors; ++i) store(sum[i], y + c + i * lanes(), Full{});
}

// y[c] = sum of rows [begin, end) of x, rows in order.
template <class T>
void sum_chunk(const Rows& x, int64_t begin, int64_t end, float* y) {
  constexpr int kVectors = 8;
  const int64_t tile = kVectors * lanes();
  int64_t c = 0;
  for (; c + tile <= x.width; c += tile) sum_tile<T, kVectors>(x, begin, end, c, y);
  for (; c + lanes() <= x.width; c += lanes()) sum_tile<T, 1>(x, begin, end, c, y);
  if (c == x.width) return;
  const Tail tail{x.width - c};
  Vec sum = zero();
  for (int64_t r = begin; r < end; ++r) sum = hn::Add(sum, load(at<T>(x, r, c), tail));
  store(sum, y + c, tail);
}

// The row dy[s] / n to rows [begin, end) of dx.
template <class T>
void spread_row(const Rows& dy, int64_t s, float n, int64_t begin, int64_t end, const Rows& dx) {
  const auto from = at<T>(dy, s);
  const Vec scale = splat(1 / n);
  for (int64_t r = begin; r < end; ++r) {
    const auto to = at<T>(dx, r);
    for_columns(dy.width, [&](int64_t c, auto part) HWY_ATTR {
      store(hn::Mul(load(offset(from, c), part), scale), offset(to, c), part);
    });
  }
}

template <class T>
void scale_row(const float* x, int64_t width, float n, const Rows& y, int64_t r) {
  const auto to = at<T>(y, r);
  const Vec scale = splat(1 / n);
  for_columns(width, [&](int64_t c, auto part) HWY_ATTR {
    store(hn::Mul(load(x + c, part), scale), offset(to, c), part);
  });
}

// The sum over columns of the row at p.
template <class P>
HWY_INLINE float sum_row(P p, int64_t width) {
  Chains sum(zero());
  for_columns_in_chains(width, [&](int64_t c, auto part, int chain) HWY_ATTR {
    sum.v[chain] = hn::Add(sum.v[chain], load(offset(p, c), part));
  });
  return sum.sum();
}

// The sum of exp(p[c] - max) over columns, which e receives unless it is null.
template <class P>
HWY_INLINE float exp_row(P p, int64_t width, float max, float* e) {
  Vec sum = zero();
  for_columns(width, [&](int64_t c, auto part) HWY_ATTR {
    const Vec v = exp_normal(hn::Sub(load(offset(p, c), part), splat(max)));
    sum = hn::Add(sum, keep(v, zero(), part));
    if (e) store(v, e + c, part);
  });
  return sum_lanes(sum);
}

template <class T>
void softmax_row(const Rows& x, const Rows& y, int64_t r) {
  const auto px = at<T>(x, r);
  const auto py = at<T>(y, r);
  const float max = max_row(px, x.width);
  const bool nothing = max == -kInfinity;  // no column is visible
  float* e = scratch<float>(x.width);
  const float sum = exp_row(px, x.width, nothing ? 0.0f : max, e);
  const Vec scale = splat(sum == 0 ? 0.0f : 1.0f / sum);
  for_columns(x.width, [&](int64_t c, auto part) HWY_ATTR {
    store(hn::Mul(load(e + c, part), scale), offset(py, c), part);
  });
}

template <class T>
void softmax_backward_row(const Rows& y, const Rows& dy, const Rows& dx, int64_t r) {
  const auto py = at<T>(y, r);
  const auto pdy = at<T>(dy, r);
  const auto pdx = at<T>(dx, r);
  Vec dot = zero();
  for_columns(y.width, [&](int64_t c, auto part) HWY_ATTR {
    dot = hn::MulAdd(load(offset(py, c), part), load(offset(pdy, c), part), dot);
  });
  const Vec sum = splat(sum_lanes(dot));
  for_columns(y.width, [&](int64_t c, auto part) HWY_ATTR {
    const Vec d = hn::Sub(load(offset(pdy, c), part), sum);
    store(hn::Mul(load(offset(py, c), part), d), offset(pdx, c), part);
  });
}

template <class T>
void log_softmax_row(const Rows& x, const Rows& y, int64_t r) {
  const auto px = at<T>(x, r);
  float* py = y.row<float>(r);
  const float max = max_row(px, x.width);
  const float shift = max == -kInfinity ? 0.0f : max;
  const Vec log_sum = splat(std::log(exp_row(px, x.width, shift, nullptr)));
  for_columns(x.width, [&](int64_t c, auto part) HWY_ATTR {
    store(hn::Sub(hn::Sub(load(offset(px, c), part), splat(shift)), log_sum), py + c, part);
  });
}

// The sum of e^(x - most), or 0 if it is not wanted; NaN if there is one.
template <class T>
float sum_of_logits(const T* x, int64_t width, float most, bool is_wanted) {
  Chains sum(zero());
  if (!is_wanted) {
    for_columns_in_chains(width, [&](int64_t c, auto part, int chain) HWY_ATTR {
      sum.v[chain] = hn::Add(sum.v[chain], load(x + c, part));
    });
    const float total = sum.sum();
    return std::isnan(total) ? total : 0;
  }
  const Vec shift = splat(most == -kInfinity ? 0 : most);
  for_columns_in_chains(width, [&](int64_t c, auto part, int chain) HWY_ATTR {
    const Vec e = exp_normal(hn::Sub(load(x + c, part), shift));
    sum.v[chain] = hn::Add(sum.v[chain], keep(e, zero(), part));
  });
  return sum.sum();
}

template <class T>
void scan_row(const LogitScanArgs& a, int64_t r) {
  constexpr int64_t kBlock = LogitScanArgs::kBlock, kSumBlock = LogitScanArgs::kSumBlock;
  float* maxima = a.maxima + r * a.maxima_stride;
  float* sums = a.sums + r * a.sums_stride;
  for (int64_t begin = 0; begin < a.logits.width; begin += kSumBlock) {
    const T* x = a.logits.row<T>(r) + begin;
    const int64_t width = std::min(kSumBlock, a.logits.width - begin);
    const int64_t blocks = (width + kBlock - 1) / kBlock;
    for (int64_t b = 0; b < blocks; ++b) {
      maxima[b] = max_row(x + b * kBlock, std::min(kBlock, width - b * kBlock));
    }
    const float most = max_row(static_cast<const float*>(maxima), blocks);
    *sums++ = sum_of_logits(x, width, most, a.wants_sums);
    maxima += blocks;
  }
}

HWY_INLINE float sum_squares_chunk(const float* x, int64_t n) {
  Chains sum(zero());
  for_columns_in_chains(n, [&](int64_t i, auto part, int chain) HWY_ATTR {
    const Vec v = load(x + i, part);
    sum.v[chain] = hn::MulAdd(v, v, sum.v[chain]);
  });
  return sum.sum();
}

// Whether every element of the row is finite: x - x is 0 then, NaN otherwise.
template <class P>
HWY_INLINE bool finite_row(P p, int64_t width) {
  Vec bad = zero();
  for_columns(width, [&](int64_t c, auto part) HWY_ATTR {
    const Vec v = load(offset(p, c), part);
    bad = hn::Add(bad, hn::Sub(v, v));
  });
  return hn::AllTrue(F32(), hn::Eq(bad, zero()));
}

}  // namespace

void sum_columns_impl(Rows x, float* y) {
  const RowChunks chunks{x.rows};
  const int64_t count = chunks.count(), width = x.width;
  float* partial = count == 1 ? y : scratch<float, 1>(count * width);
  visit_float(x.dtype, [&]<class T>() {
    parallel_for(count, [&](int64_t i) {
      sum_chunk<T>(x, chunks.begin(i), chunks.end(i), partial + i * width);
    });
  });
  if (count > 1) {
    sum_chunk<float>({partial, count, width, width, DType::f32}, 0, count, y);
  }
}

void sum_rows_impl(Rows x, float* y) {
  for_each_row([&]<class T>(int64_t r) HWY_ATTR { y[r] = sum_row(at<T>(x, r), x.width); }, x);
}

void segment_mean_impl(Rows x, const int64_t* offsets, Rows y) {
  visit_rows(
      [&]<class T>() {
        parallel_for(y.rows, [&](int64_t s) {
          const auto n = static_cast<float>(offsets[s + 1] - offsets[s]);
          float* sum = scratch<float>(y.width);
          sum_chunk<T>(x, offsets[s], offsets[s + 1], sum);
          scale_row<T>(sum, y.width, n, y, s);
        });
      },
      x, y);
}

void segment_mean_backward_impl(Rows dy, const int64_t* offsets, Rows dx) {
  visit_rows(
      [&]<class T>() {
        parallel_for(dy.rows, [&](int64_t s) {
          const auto n = static_cast<float>(offsets[s + 1] - offsets[s]);
          spread_row<T>(dy, s, n, offsets[s], offsets[s + 1], dx);
        });
      },
      dy, dx);
}

double sum_squares_impl(const float* x, int64_t n) {
  constexpr int64_t kChunk = 16384;
  const int64_t chunks = (n + kChunk - 1) / kChunk;
  double* partial = scratch<double>(chunks);
  parallel_blocks(n, kChunk, [&](int64_t begin, int64_t end) {
    partial[begin / kChunk] = static_cast<double>(sum_squares_chunk(x + begin, end - begin));
  });
  double sum = 0;
  for (int64_t i = 0; i < chunks; ++i) sum += partial[i];
  return sum;
}

bool all_finite_impl(Rows x) {
  std::atomic<bool> finite = true;
  if (x.contiguous()) {  // in rows long enough to be worth a call
    const int64_t n = x.rows * x.width;
    visit_float(x.dtype, [&]<class T>() {
      parallel_blocks(n, 16384, [&](int64_t begin, int64_t end) {
        if (!finite_row(at<T>(x, 0, begin), end - begin)) finite = false;
      });
    });
    return finite;
  }
  for_each_row(
      [&]<class T>(int64_t r) HWY_ATTR {
        if (!finite_row(at<T>(x, r), x.width)) finite = false;
      },
      x);
  return finite;
}

void softmax_impl(Rows x, Rows y) {
  for_each_row([&]<class T>(int64_t r) { softmax_row<T>(x, y, r); }, y, x);
}

void softmax_backward_impl(Rows y, Rows dy, Rows dx) {
  for_each_row([&]<class T>(int64_t r) { softmax_backward_row<T>(y, dy, dx, r); }, y, dy, dx);
}

void log_softmax_impl(Rows x, Rows y) {
  check(y.dtype == DType::f32, ErrorKind::device, "log_softmax: y is {}; it must be f32",
        dtype_name(y.dtype));
  for_each_row([&]<class T>(int64_t r) { log_softmax_row<T>(x, y, r); }, x);
}
void scan_logits_impl(const LogitScanArgs& a) {
  visit_float(a.logits.dtype, [&]<class T>() {
    parallel_blocks(a.logits.rows, rows_per_block(a.logits.width * 4),
                    [&](int64_t begin, int64_t end) {
                      for (int64_t r = begin; r < end; ++r) scan_row<T>(a, r);
                    });
  });
}

}  // namespace heddle::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heddle::cpu {
HWY_EXPORT(sum_columns_impl);
HWY_EXPORT(sum_rows_impl);
HWY_EXPORT(segment_mean_impl);
HWY_EXPORT(segment_mean_backward_impl);
HWY_EXPORT(sum_squares_impl);
HWY_EXPORT(all_finite_impl);
HWY_EXPORT(softmax_impl);
HWY_EXPORT(softmax_backward_impl);
HWY_EXPORT(log_softmax_impl);
HWY_EXPORT(scan_logits_impl);
}  // namespace heddle::cpu

namespace heddle {

ReduceKernels ReduceKernels::of_cpu() {
  return {HEDDLE_CPU_KERNEL(sum_columns),  HEDDLE_CPU_KERNEL(sum_rows),
          HEDDLE_CPU_KERNEL(segment_mean), HEDDLE_CPU_KERNEL(segment_mean_backward),
          HEDDLE_CPU_KERNEL(sum_squares),  HEDDLE_CPU_KERNEL(all_finite),
          HEDDLE_CPU_KERNEL(softmax),      HEDDLE_CPU_KERNEL(softmax_backward),
          HEDDLE_CPU_KERNEL(log_softmax),  HEDDLE_CPU_KERNEL(scan_logits)};
}

}  // namespace heddle
#endif
