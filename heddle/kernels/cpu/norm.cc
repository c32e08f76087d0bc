// Layer norm (Ba et al. 2016) and RMS norm (Zhang & Sennrich 2019) with the residual sum and its
// dropout, and group norm (Wu & He 2018), forward and backward.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "heddle/kernels/cpu/norm.cc"
#include <algorithm>
#include <cmath>

#include "heddle/base/parallel.h"
#include "heddle/kernels/cpu/row_chunks.h"
#include "heddle/kernels/cpu/scratch.h"
#include "heddle/kernels/cpu/targets.h"
#include "heddle/kernels/norm.h"
#include "hwy/foreach_target.h"
// after foreach_target.h
#include "heddle/kernels/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heddle::cpu::HWY_NAMESPACE {
namespace {

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

// Rows whose columns are summed in f32 before they join sums in double; the first-level cache holds
// them.
constexpr int64_t kBlockRows = 64;

// Groups that one task takes of a segment: vectors are full across the bounds of narrow groups.
int64_t groups_of_task(const GroupNormArgs& a) {
  return std::clamp<int64_t>(64 / (a.x.width / a.groups), 1, a.groups);
}
int64_t tasks_of_segment(const GroupNormArgs& a) {
  return (a.groups + groups_of_task(a) - 1) / groups_of_task(a);
}

// sums[c] += f(row, c, part) over the rows [begin, end), at most kBlockRows.
template <class F>
HWY_INLINE void add_columns(int64_t begin, int64_t end, int64_t width, const F& f, double* sums) {
  for_columns(width, [&](int64_t c, auto part) HWY_ATTR {
    Chains of_rows(zero());
    int64_t r = begin;
    for (; r + 4 <= end; r += 4) {
      for (int64_t i = 0; i < 4; ++i) of_rows.v[i] = hn::Add(of_rows.v[i], f(r + i, c, part));
    }
    for (; r < end; ++r) of_rows.v[0] = hn::Add(of_rows.v[0], f(r, c, part));
    HWY_ALIGN float lane[16];
    store(hn::Add(hn::Add(of_rows.v[0], of_rows.v[1]), hn::Add(of_rows.v[2], of_rows.v[3])), lane,
          Full{});
    const int64_t count = std::min(lanes(), width - c);
    for (int64_t i = 0; i < count; ++i) sums[c + i] += double{lane[i]};
  });
}

// The rows and columns of one task; what belongs to a group is written to all its columns.
struct GroupsOfTask {
  int64_t segment, first_group, groups, group_width, first, width, begin, end;

  // i: which task of all segments.
  GroupsOfTask(const GroupNormArgs& a, int64_t i)
      : segment(i / tasks_of_segment(a)),
        first_group(i % tasks_of_segment(a) * groups_of_task(a)),
        groups(std::min(groups_of_task(a), a.groups - first_group)),
        group_width(a.x.width / a.groups),
        first(first_group * group_width),
        width(groups * group_width),
        begin(a.offsets[segment]),
        end(a.offsets[segment + 1]) {}

  // Calls f(index in [segments, groups], the first of its columns here) for each group.
  template <class F>
  void for_groups(const GroupNormArgs& a, const F& f) const {
    const int64_t at = segment * a.groups + first_group;
    for (int64_t g = 0; g < groups; ++g) f(at + g, g * group_width);
  }
  // The mean of weight[c] sums[c] over a group; weight null: 1.
  double mean(const double* sums, const float* weight, int64_t from) const {
    double sum = 0;
    for (int64_t c = from; c < from + group_width; ++c) {
      sum += weight == nullptr ? sums[c] : double{weight[first + c]} * sums[c];
    }
    return sum / static_cast<double>(std::max<int64_t>(1, (end - begin) * group_width));
  }
  // Calls f(begin, end) for blocks of rows.
  template <class F>
  void for_blocks(const F& f) const {
    for (int64_t r = begin; r < end; r += kBlockRows) f(r, std::min(r + kBlockRows, end));
  }
};

template <class T>
HWY_INLINE void group_norm_of(const GroupNormArgs& a, int64_t i) {
  const GroupsOfTask t(a, i);
  double* const sums = scratch<double>(2 * t.width);
  double* const squares = sums + t.width;
  float* const mean = scratch<float>(2 * t.width);
  float* const scale = mean + t.width;  // rstd gamma
  std::fill_n(sums, 2 * t.width, 0.0);
  t.for_blocks([&](int64_t begin, int64_t end) HWY_ATTR {
    add_columns(
        begin, end, t.width,
        [&](int64_t r, int64_t c, auto part)
            HWY_ATTR { return load(at<T>(a.x, r, t.first + c), part); },
        sums);
  });
  t.for_groups(a, [&](int64_t group, int64_t from) {
    a.mean[group] = static_cast<float>(t.mean(sums, nullptr, from));
    std::fill_n(mean + from, t.group_width, a.mean[group]);
  });
  const auto d = [&](int64_t r, int64_t c, auto part) HWY_ATTR {
    return hn::Sub(load(at<T>(a.x, r, t.first + c), part), load(mean + c, part));
  };
  t.for_blocks([&](int64_t begin, int64_t end) HWY_ATTR {
    add_columns(
        begin, end, t.width,
        [&](int64_t r, int64_t c, auto part) HWY_ATTR {
          const Vec v = d(r, c, part);
          return hn::Mul(v, v);
        },
        squares);
  });
  t.for_groups(a, [&](int64_t group, int64_t from) {
    a.rstd[group] = static_cast<float>(1 / std::sqrt(t.mean(squares, nullptr, from) + a.eps));
    for (int64_t c = from; c < from + t.group_width; ++c) {
      scale[c] = a.rstd[group] * a.gamma[t.first + c];
    }
  });
  for (int64_t r = t.begin; r < t.end; ++r) {
    for_columns(t.width, [&](int64_t c, auto part) HWY_ATTR {
      const Vec beta = load(a.beta + t.first + c, part);
      store(hn::MulAdd(d(r, c, part), load(scale + c, part), beta), at<T>(a.y, r, t.first + c),
            part);
    });
  }
}

// With d = x - mean, n = rstd d and g = dy gamma: dx = rstd (g - mean(g) - n mean(g n));
// dgamma = sum dy n, dbeta = sum dy, those of the segment.
template <class T>
HWY_INLINE void group_norm_backward_of(const GroupNormBackwardArgs& b, int64_t i, float* dgamma,
                                       float* dbeta) {
  const GroupNormArgs& a = b.forward;
  const GroupsOfTask t(a, i);
  double* const of_dy = scratch<double>(2 * t.width);
  double* const of_dy_d = of_dy + t.width;
  float* const mean = scratch<float>(4 * t.width);
  float* const scale = mean + t.width;   // rstd gamma
  float* const shift = scale + t.width;  // rstd mean(g)
  float* const slope = shift + t.width;  // rstd² mean(g n)
  std::fill_n(of_dy, 2 * t.width, 0.0);
  t.for_groups(a, [&](int64_t group, int64_t from) {
    std::fill_n(mean + from, t.group_width, a.mean[group]);
  });
  const auto d = [&](int64_t r, int64_t c, auto part) HWY_ATTR {
    return hn::Sub(load(at<T>(a.x, r, t.first + c), part), load(mean + c, part));
  };
  const auto dy = [&](int64_t r, int64_t c, auto part)
                      HWY_ATTR { return load(at<T>(b.dy, r, t.first + c), part); };
  t.for_blocks([&](int64_t begin, int64_t end) HWY_ATTR {
    add_columns(begin, end, t.width, dy, of_dy);
    add_columns(
        begin, end, t.width,
        [&](int64_t r, int64_t c, auto part)
            HWY_ATTR { return hn::Mul(dy(r, c, part), d(r, c, part)); },
        of_dy_d);
  });
  t.for_groups(a, [&](int64_t group, int64_t from) {
    const double rstd = a.rstd[group], cube = rstd * rstd * rstd;
    for (int64_t c = from; c < from + t.group_width; ++c) {
      scale[c] = a.rstd[group] * a.gamma[t.first + c];
      dgamma[t.first + c] = static_cast<float>(rstd * of_dy_d[c]);
      dbeta[t.first + c] = static_cast<float>(of_dy[c]);
    }
    std::fill_n(shift + from, t.group_width,
                static_cast<float>(rstd * t.mean(of_dy, a.gamma, from)));
    std::fill_n(slope + from, t.group_width,
                static_cast<float>(cube * t.mean(of_dy_d, a.gamma, from)));
  });
  for (int64_t r = t.begin; r < t.end; ++r) {
    for_columns(t.width, [&](int64_t c, auto part) HWY_ATTR {
      const Vec g = hn::MulSub(dy(r, c, part), load(scale + c, part), load(shift + c, part));
      store(hn::NegMulAdd(d(r, c, part), load(slope + c, part), g), at<T>(b.dx, r, t.first + c),
            part);
    });
  }
}

}  // namespace

void group_norm_impl(const GroupNormArgs& args) {
  visit_rows(
      [&]<class T>() {
        parallel_for(args.segments * tasks_of_segment(args),
                     [&](int64_t i) { group_norm_of<T>(args, i); });
      },
      args.x, args.y);
}

void group_norm_backward_impl(const GroupNormBackwardArgs& args) {
  const int64_t width = args.dx.width, segments = args.forward.segments;
  float* const partial = scratch<float, 1>(std::max<int64_t>(1, segments) * 2 * width);
  std::fill_n(partial, 2 * width, 0.0f);
  const int64_t tasks = tasks_of_segment(args.forward);
  visit_rows(
      [&]<class T>() {
        parallel_for(segments * tasks, [&](int64_t i) {
          float* const dgamma = partial + i / tasks * 2 * width;
          group_norm_backward_of<T>(args, i, dgamma, dgamma + width);
        });
      },
      args.forward.x, args.dy, args.dx);
  sum_partials(partial, segments, 2 * width, width, args.dgamma);
  sum_partials(partial + width, segments, 2 * width, width, args.dbeta);
}

void norm_impl(const NormArgs& args) {
  for_each_row([&]<class T>(int64_t r) { norm_row<T>(args, r); }, args.y, args.x, args.sub, args.h);
}

void norm_backward_impl(const NormBackwardArgs& args) {
  const int64_t width = args.h.width;
  const RowChunks chunks{args.h.rows};
  float* partial = scratch<float, 1>(chunks.count() * 2 * width);
  visit_rows(
      [&]<class T>() {
        parallel_for(chunks.count(), [&](int64_t i) {
          float* dgamma = partial + i * 2 * width;
          float* dbeta = dgamma + width;
          std::fill_n(dgamma, 2 * width, 0.0f);
          for (int64_t r = chunks.begin(i); r < chunks.end(i); ++r) {
            norm_backward_row<T>(args, r, dgamma, dbeta);
          }
        });
      },
      args.h, args.dy, args.dh_in, args.dh, args.dsub);
  sum_partials(partial, chunks.count(), 2 * width, width, args.dgamma);
  if (args.dbeta) sum_partials(partial + width, chunks.count(), 2 * width, width, args.dbeta);
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
