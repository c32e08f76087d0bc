// Layer norm (Ba et al. 2016) and RMS norm (Zhang & Sennrich 2019) with the residual sum and its
// dropout, and group norm (Wu & He 2018), forward and backward.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "heddle/kernels/cpu/norm.cc"
#include <algorithm>
#include <cmath>

#include "heddle/base/parallel.h"
#include "heddle/kernels/cpu/scratch.h"
#include "heddle/kernels/cpu/targets.h"
#include "heddle/kernels/norm.h"
#include "hwy/foreach_target.h"
// after foreach_target.h
#include "heddle/kernels/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heddle::cpu::HWY_NAMESPACE {
namespace {

constexpr int64_t kRowChunk = 256;

// sum = x + dropout(sub), rounded as h keeps it: the backward pass sees h, not what it was before.
// Returns the mean of the row.
template <class T>
HWY_INLINE float residual_row(const NormArgs& a, int64_t r, float* sum) {
  const auto x = at<T>(a.x, r);
  const auto sub = at<T>(a.sub, r);
  const auto h = at<T>(a.h, r);
  const bool has_x = a.x.data, has_sub = a.sub.data, has_h = a.h.data;
  DropoutRow mask(has_sub ? a.dropout : Dropout(), r);
  Chains total(zero());
  for_columns_in_chains(a.y.width, [&](int64_t c, auto part, int chain) HWY_ATTR {
    Vec v = has_x ? load(offset(x, c), part) : zero();
    if (has_sub) {
      const Vec s = mask.apply(load(offset(sub, c), part), c);
      v = has_x ? hn::Add(v, s) : s;
    }
    if (has_h) {
      v = store_rounded(v, offset(h, c), part);
    } else if (has_sub) {
      v = round_to(v, has_x ? x : sub);
    }
    store(v, sum + c, part);
    total.v[chain] = hn::Add(total.v[chain], v);
  });
  return total.sum() / static_cast<float>(a.y.width);
}

template <class T>
HWY_INLINE void norm_row(const NormArgs& a, int64_t r) {
  const int64_t width = a.y.width;
  float* h = scratch<float>(width);
  const float of_row = residual_row<T>(a, r, h), mean = a.beta == nullptr ? 0.0f : of_row;
  const Vec mean_v = splat(mean);
  Chains squares(zero());
  for_columns_in_chains(width, [&](int64_t c, auto part, int chain) HWY_ATTR {
    const Vec d = keep(hn::Sub(load(h + c, part), mean_v), zero(), part);
    squares.v[chain] = hn::MulAdd(d, d, squares.v[chain]);
  });
  const float rstd = 1.0f / std::sqrt(squares.sum() / static_cast<float>(width) + a.eps);
  const Vec rstd_v = splat(rstd);
  const auto y = at<T>(a.y, r);
  for_columns(width, [&](int64_t c, auto part) HWY_ATTR {
    const Vec n = hn::Mul(hn::Sub(load(h + c, part), mean_v), rstd_v);
    const Vec shift = a.beta == nullptr ? zero() : load(a.beta + c, part);
    store(hn::MulAdd(n, load(a.gamma + c, part), shift), offset(y, c), part);
  });
  if (a.mean) a.mean[r] = mean;
  if (a.rstd) a.rstd[r] = rstd;
}

// n = (h - mean) rstd, g = dy gamma; dh = rstd (g - mean(g) - n mean(g n)) + dh_in. RMS norm has no
// means of h and g.
// dgamma += dy n, dbeta += dy.
template <class T>
HWY_INLINE void norm_backward_row(const NormBackwardArgs& a, int64_t r, float* dgamma,
                                  float* dbeta) {
  const int64_t width = a.h.width;
  const auto h = at<T>(a.h, r);
  const auto dy = at<T>(a.dy, r);
  const bool has_mean = a.mean != nullptr;
  const Vec mean = splat(has_mean ? a.mean[r] : 0.0f), rstd = splat(a.rstd[r]);
  Chains sum_g(zero()), sum_gn(zero());
  for_columns_in_chains(width, [&](int64_t c, auto part, int chain) HWY_ATTR {
    const Vec n = hn::Mul(hn::Sub(load(offset(h, c), part), mean), rstd);
    const Vec d = load(offset(dy, c), part);
    const Vec g = hn::Mul(d, load(a.gamma + c, part));
    sum_g.v[chain] = hn::Add(sum_g.v[chain], g);
    sum_gn.v[chain] = hn::MulAdd(g, n, sum_gn.v[chain]);
    store(hn::MulAdd(d, n, load(dgamma + c, part)), dgamma + c, part);
    store(hn::Add(d, load(dbeta + c, part)), dbeta + c, part);
  });
  const Vec mean_g = splat(has_mean ? sum_g.sum() / static_cast<float>(width) : 0.0f);
  const Vec mean_gn = splat(sum_gn.sum() / static_cast<float>(width));
  const auto dh_in = at<T>(a.dh_in, r);
  const auto dh = at<T>(a.dh, r);
  const auto dsub = at<T>(a.dsub, r);
  const bool has_in = a.dh_in.data, has_sub = a.dsub.data;
  DropoutRow mask(has_sub ? a.dropout : Dropout(), r);
  for_columns(width, [&](int64_t c, auto part) HWY_ATTR {
    const Vec n = hn::Mul(hn::Sub(load(offset(h, c), part), mean), rstd);
    const Vec g = hn::Mul(load(offset(dy, c), part), load(a.gamma + c, part));
    Vec d = hn::Mul(rstd, hn::NegMulAdd(n, mean_gn, hn::Sub(g, mean_g)));
    if (has_in) d = hn::Add(d, load(offset(dh_in, c), part));
    d = store_rounded(d, offset(dh, c), part);
    if (has_sub) store(mask.apply(d, c), offset(dsub, c), part);
  });
}

// y = the sum of the chunks' partial sums, chunks in order.
void sum_partials(const float* partial, int64_t chunks, int64_t stride, int64_t width, float* y) {
  for_columns(width, [&](int64_t c, auto part) HWY_ATTR {
    Vec sum = load(partial + c, part);
    for (int64_t i = 1; i < chunks; ++i) sum = hn::Add(sum, load(partial + i * stride + c, part));
    store(sum, y + c, part);
  });
}

// The mean of f(row, column, part) over a segment's rows of `width` columns from `first` on: each
// row in vectors, rows in order.
template <class F>
HWY_INLINE double mean_of_group(int64_t begin, int64_t end, int64_t first, int64_t width,
                                const F& f) {
  double sum = 0;
  for (int64_t r = begin; r < end; ++r) {
    Vec of_row = zero();
    for_columns(width, [&](int64_t c, auto part) HWY_ATTR {
      of_row = hn::Add(of_row, keep(f(r, first + c, part), zero(), part));
    });
    sum += static_cast<double>(sum_lanes(of_row));
  }
  return sum / static_cast<double>(std::max<int64_t>(1, (end - begin) * width));
}

template <class T>
HWY_INLINE void group_norm_of(const GroupNormArgs& a, int64_t s, int64_t group) {
  const int64_t width = a.x.width / a.groups, first = group * width;
  const int64_t begin = a.offsets[s], end = a.offsets[s + 1];
  const auto x = [&](int64_t r, int64_t c, auto part)
                     HWY_ATTR { return load(at<T>(a.x, r, c), part); };
  const auto mean = static_cast<float>(mean_of_group(begin, end, first, width, x));
  const Vec mean_v = splat(mean);
  const double variance =
      mean_of_group(begin, end, first, width, [&](int64_t r, int64_t c, auto part) HWY_ATTR {
        const Vec d = hn::Sub(x(r, c, part), mean_v);
        return hn::Mul(d, d);
      });
  const auto rstd = static_cast<float>(1 / std::sqrt(variance + a.eps));
  for (int64_t r = begin; r < end; ++r) {
    for_columns(width, [&](int64_t i, auto part) HWY_ATTR {
      const int64_t c = first + i;
      const Vec n = hn::Mul(hn::Sub(x(r, c, part), mean_v), splat(rstd));
      store(hn::MulAdd(n, load(a.gamma + c, part), load(a.beta + c, part)), at<T>(a.y, r, c), part);
    });
  }
  a.mean[s * a.groups + group] = mean;
  a.rstd[s * a.groups + group] = rstd;
}

template <class T>
HWY_INLINE void group_norm_backward_of(const GroupNormBackwardArgs& b, int64_t s, int64_t group) {
  const GroupNormArgs& a = b.forward;
  const int64_t width = a.x.width / a.groups, first = group * width;
  const int64_t begin = a.offsets[s], end = a.offsets[s + 1], at_group = s * a.groups + group;
  const Vec mean = splat(a.mean[at_group]), rstd = splat(a.rstd[at_group]);
  const auto n = [&](int64_t r, int64_t c, auto part) HWY_ATTR {
    return hn::Mul(hn::Sub(load(at<T>(a.x, r, c), part), mean), rstd);
  };
  const auto g = [&](int64_t r, int64_t c, auto part) HWY_ATTR {
    return hn::Mul(load(at<T>(b.dy, r, c), part), load(a.gamma + c, part));
  };
  const Vec mean_g = splat(static_cast<float>(mean_of_group(begin, end, first, width, g)));
  const Vec mean_gn = splat(static_cast<float>(
      mean_of_group(begin, end, first, width, [&](int64_t r, int64_t c, auto part) HWY_ATTR {
        return hn::Mul(g(r, c, part), n(r, c, part));
      })));
  for (int64_t r = begin; r < end; ++r) {
    for_columns(width, [&](int64_t i, auto part) HWY_ATTR {
      const int64_t c = first + i;
      const Vec d = load(at<T>(b.dy, r, c), part), of_row = n(r, c, part);
      store(hn::MulAdd(d, of_row, load(b.dgamma + c, part)), b.dgamma + c, part);
      store(hn::Add(d, load(b.dbeta + c, part)), b.dbeta + c, part);
      const Vec dx = hn::NegMulAdd(of_row, mean_gn, hn::Sub(g(r, c, part), mean_g));
      store(hn::Mul(rstd, dx), at<T>(b.dx, r, c), part);
    });
  }
}

}  // namespace

void group_norm_impl(const GroupNormArgs& args) {
  visit_rows(
      [&]<class T>() {
        parallel_for(args.segments * args.groups,
                     [&](int64_t i) { group_norm_of<T>(args, i / args.groups, i % args.groups); });
      },
      args.x, args.y);
}

// A group's columns belong to one thread: dgamma and dbeta grow segment by segment.
void group_norm_backward_impl(const GroupNormBackwardArgs& args) {
  std::fill_n(args.dgamma, args.dx.width, 0.0f);
  std::fill_n(args.dbeta, args.dx.width, 0.0f);
  visit_rows(
      [&]<class T>() {
        parallel_for(args.forward.groups, [&](int64_t group) {
          for (int64_t s = 0; s < args.forward.segments; ++s) {
            group_norm_backward_of<T>(args, s, group);
          }
        });
      },
      args.forward.x, args.dy, args.dx);
}

void norm_impl(const NormArgs& args) {
  for_each_row([&]<class T>(int64_t r) { norm_row<T>(args, r); }, args.y, args.x, args.sub, args.h);
}

void norm_backward_impl(const NormBackwardArgs& args) {
  const int64_t rows = args.h.rows, width = args.h.width;
  const int64_t chunks = std::max<int64_t>(1, (rows + kRowChunk - 1) / kRowChunk);
  float* partial = scratch<float, 1>(chunks * 2 * width);
  visit_rows(
      [&]<class T>() {
        parallel_for(chunks, [&](int64_t i) {
          float* dgamma = partial + i * 2 * width;
          float* dbeta = dgamma + width;
          std::fill_n(dgamma, 2 * width, 0.0f);
          const int64_t end = std::min((i + 1) * kRowChunk, rows);
          for (int64_t r = i * kRowChunk; r < end; ++r) {
            norm_backward_row<T>(args, r, dgamma, dbeta);
          }
        });
      },
      args.h, args.dy, args.dh_in, args.dh, args.dsub);
  sum_partials(partial, chunks, 2 * width, width, args.dgamma);
  if (args.dbeta) sum_partials(partial + width, chunks, 2 * width, width, args.dbeta);
}

}  // namespace heddle::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heddle::cpu {
HWY_EXPORT(norm_impl);
HWY_EXPORT(norm_backward_impl);
HWY_EXPORT(group_norm_impl);
HWY_EXPORT(group_norm_backward_impl);
}  // namespace heddle::cpu

namespace heddle {

NormKernels NormKernels::of_cpu() {
  return {HEDDLE_CPU_KERNEL(norm), HEDDLE_CPU_KERNEL(norm_backward), HEDDLE_CPU_KERNEL(group_norm),
          HEDDLE_CPU_KERNEL(group_norm_backward)};
}

}  // namespace heddle
#endif
