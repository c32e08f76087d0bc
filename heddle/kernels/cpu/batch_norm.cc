// Batch norm (Ioffe & Szegedy 2015) over rows of pixels: sums of each column in fixed chunks of
// rows, a chunk's rows in the cache while they are read twice.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "heddle/kernels/cpu/batch_norm.cc"
#include "heddle/kernels/batch_norm.h"

#include <algorithm>

#include "heddle/base/parallel.h"
#include "heddle/kernels/cpu/scratch.h"
#include "heddle/kernels/cpu/targets.h"
#include "hwy/foreach_target.h"
// after foreach_target.h
#include "heddle/kernels/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heddle::cpu::HWY_NAMESPACE {
namespace {

constexpr int64_t kRowsOfChunk = 256;

int64_t chunks_of(int64_t rows) { return (rows + kRowsOfChunk - 1) / kRowsOfChunk; }
int64_t end_of(int64_t chunk, int64_t rows) { return std::min((chunk + 1) * kRowsOfChunk, rows); }

// Calls f(row, sums) for each row of a chunk, with four sets of sums by turns, which do not wait
// for each other, and adds them up.
template <int kSums, class F>
HWY_INLINE void sum_rows(int64_t begin, int64_t end, Vec* sums, const F& f) {
  Vec all[4][kSums];
  for (auto& set : all) {
    for (Vec& v : set) v = zero();
  }
  int64_t r = begin;
  for (; r + 4 <= end; r += 4) {
    f(r, all[0]);
    f(r + 1, all[1]);
    f(r + 2, all[2]);
    f(r + 3, all[3]);
  }
  for (; r < end; ++r) f(r, all[0]);
  for (int i = 0; i < kSums; ++i) {
    sums[i] = hn::Add(hn::Add(all[0][i], all[1][i]), hn::Add(all[2][i], all[3][i]));
  }
}

// sums: the mean of each column over the chunk; squares: the sum of what is around it, squared.
template <class T>
HWY_INLINE void moments_of_chunk(const Rows& x, int64_t begin, int64_t end, float* means,
                                 float* squares) {
  for_columns(x.width, [&](int64_t c, auto part) HWY_ATTR {
    Vec sum;
    sum_rows<1>(begin, end, &sum, [&](int64_t r, Vec* to) HWY_ATTR {
      to[0] = hn::Add(to[0], load(at<T>(x, r, c), part));
    });
    const Vec mean = hn::Mul(sum, splat(1.0f / static_cast<float>(end - begin)));
    sum_rows<1>(begin, end, &sum, [&](int64_t r, Vec* to) HWY_ATTR {
      const Vec d = hn::Sub(load(at<T>(x, r, c), part), mean);
      to[0] = hn::MulAdd(d, d, to[0]);
    });
    store(mean, means + c, part);
    store(sum, squares + c, part);
  });
}

// The same expression forward and backward, so that ReLU is shut in both or in neither.
template <class Part>
HWY_INLINE Vec normed(const BatchNormArgs& a, const float* scale, Vec x, int64_t c, Part part) {
  return hn::MulAdd(hn::Sub(x, load(a.mean + c, part)), load(scale + c, part),
                    load(a.beta + c, part));
}

// The gradient behind ReLU.
template <class T, class Part>
HWY_INLINE Vec gradient(const BatchNormBackwardArgs& b, const float* scale, Vec x, int64_t r,
                        int64_t c, Part part) {
  const BatchNormArgs& a = b.forward;
  const Vec dy = load(at<T>(b.dy, r, c), part);
  if (!a.relu) return dy;
  const Vec y = a.added.data ? load(at<T>(a.y, r, c), part) : normed(a, scale, x, c, part);
  return hn::IfThenElseZero(hn::Gt(y, zero()), dy);
}

// Sums of g and of g (x - mean) over a chunk.
template <class T>
HWY_INLINE void sums_of_chunk(const BatchNormBackwardArgs& b, const float* scale, int64_t begin,
                              int64_t end, float* of_g, float* of_gd) {
  const BatchNormArgs& a = b.forward;
  for_columns(a.x.width, [&](int64_t c, auto part) HWY_ATTR {
    const Vec mean = load(a.mean + c, part);
    Vec sums[2];
    sum_rows<2>(begin, end, sums, [&](int64_t r, Vec* to) HWY_ATTR {
      const Vec x = load(at<T>(a.x, r, c), part);
      Vec g = gradient<T>(b, scale, x, r, c, part);
      if (b.dadded.data) g = store_rounded(g, at<T>(b.dadded, r, c), part);
      to[0] = hn::Add(to[0], g);
      to[1] = hn::MulAdd(g, hn::Sub(x, mean), to[1]);
    });
    store(sums[0], of_g + c, part);
    store(sums[1], of_gd + c, part);
  });
}

// gamma * rstd.
float* scales_of(const BatchNormArgs& a) {
  float* const scale = scratch<float, 2>(a.x.width);
  for (int64_t c = 0; c < a.x.width; ++c) scale[c] = a.gamma[c] * a.rstd[c];
  return scale;
}

template <class T>
void write_gradient(const BatchNormBackwardArgs& b, const float* scale) {
  const BatchNormArgs& a = b.forward;
  const int64_t width = a.x.width;
  // dx = scale g - of_g - (x - mean) of_gd
  float* const of_g = scratch<float, 3>(2 * width);
  float* const of_gd = of_g + width;
  const float share = b.is_fixed ? 0.0f : 1.0f / static_cast<float>(std::max<int64_t>(1, a.x.rows));
  for (int64_t c = 0; c < width; ++c) {
    of_g[c] = scale[c] * b.dbeta[c] * share;
    of_gd[c] = scale[c] * b.dgamma[c] * share * a.rstd[c];
  }
  parallel_blocks(a.x.rows, rows_per_block(width * 4), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      for_columns(width, [&](int64_t c, auto part) HWY_ATTR {
        const Vec x = load(at<T>(a.x, r, c), part);
        const Vec g = b.dadded.data ? load(at<T>(b.dadded, r, c), part)
                                    : gradient<T>(b, scale, x, r, c, part);
        const Vec d = hn::Sub(x, load(a.mean + c, part));
        const Vec dx = hn::MulSub(g, load(scale + c, part), load(of_g + c, part));
        store(hn::NegMulAdd(d, load(of_gd + c, part), dx), at<T>(b.dx, r, c), part);
      });
    }
  });
}

}  // namespace

// Chan, Golub & LeVeque 1979: squares around the mean of all are those around the chunks' means,
// and the means' own.
void column_moments_impl(const ColumnMomentsArgs& a) {
  const int64_t rows = a.x.rows, width = a.x.width, chunks = chunks_of(rows);
  float* const partial = scratch<float, 1>(chunks * 2 * width);
  visit_rows(
      [&]<class T>() {
        parallel_for(chunks, [&](int64_t i) {
          float* const means = partial + i * 2 * width;
          moments_of_chunk<T>(a.x, i * kRowsOfChunk, end_of(i, rows), means, means + width);
        });
      },
      a.x);
  parallel_blocks(width, 16, [&](int64_t begin, int64_t end) {
    const auto count = [&](int64_t i) {
      return static_cast<double>(end_of(i, rows) - i * kRowsOfChunk);
    };
    for (int64_t c = begin; c < end; ++c) {
      double sum = 0, squares = 0;
      for (int64_t i = 0; i < chunks; ++i) {
        sum += static_cast<double>(partial[i * 2 * width + c]) * count(i);
      }
      const double mean = sum / static_cast<double>(std::max<int64_t>(1, rows));
      for (int64_t i = 0; i < chunks; ++i) {
        const double d = static_cast<double>(partial[i * 2 * width + c]) - mean;
        squares += static_cast<double>(partial[(i * 2 + 1) * width + c]) + d * d * count(i);
      }
      a.mean[c] = static_cast<float>(mean);
      a.variance[c] = static_cast<float>(squares / static_cast<double>(std::max<int64_t>(1, rows)));
    }
  });
}

void batch_norm_impl(const BatchNormArgs& a) {
  const float* const scale = scales_of(a);
  for_each_row(
      [&]<class T>(int64_t r) HWY_ATTR {
        for_columns(a.y.width, [&](int64_t c, auto part) HWY_ATTR {
          Vec y = normed(a, scale, load(at<T>(a.x, r, c), part), c, part);
          if (a.added.data) y = hn::Add(y, load(at<T>(a.added, r, c), part));
          if (a.relu) y = hn::Max(zero(), y);
          store(y, at<T>(a.y, r, c), part);
        });
      },
      a.y, a.x, a.added);
}

void batch_norm_backward_impl(const BatchNormBackwardArgs& b) {
  const BatchNormArgs& a = b.forward;
  const int64_t rows = a.x.rows, width = a.x.width, chunks = chunks_of(rows);
  float* const partial = scratch<float, 1>(chunks * 2 * width);
  const float* const scale = scales_of(a);
  visit_rows(
      [&]<class T>() {
        parallel_for(chunks, [&](int64_t i) {
          float* const sums = partial + i * 2 * width;
          sums_of_chunk<T>(b, scale, i * kRowsOfChunk, end_of(i, rows), sums, sums + width);
        });
        for (int64_t c = 0; c < width; ++c) {
          double of_g = 0, of_gd = 0;
          for (int64_t i = 0; i < chunks; ++i) {
            of_g += static_cast<double>(partial[i * 2 * width + c]);
            of_gd += static_cast<double>(partial[(i * 2 + 1) * width + c]);
          }
          b.dbeta[c] = static_cast<float>(of_g);
          b.dgamma[c] = static_cast<float>(of_gd * static_cast<double>(a.rstd[c]));
        }
        write_gradient<T>(b, scale);
      },
      a.x, b.dy, b.dx, a.relu && a.added.data ? a.y : Rows(), b.dadded);
}

}  // namespace heddle::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heddle::cpu {
HWY_EXPORT(column_moments_impl);
HWY_EXPORT(batch_norm_impl);
HWY_EXPORT(batch_norm_backward_impl);
}  // namespace heddle::cpu

namespace heddle {

BatchNormKernels BatchNormKernels::of_cpu() {
  return {HEDDLE_CPU_KERNEL(column_moments), HEDDLE_CPU_KERNEL(batch_norm),
          HEDDLE_CPU_KERNEL(batch_norm_backward)};
}

}  // namespace heddle
#endif
