// Cross entropy with label smoothing (Szegedy et al. 2016) and its gradient.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "heddle/kernels/cpu/loss.cc"
#include <cmath>
#include <utility>

#include "heddle/base/parallel.h"
#include "heddle/kernels/cpu/scratch.h"
#include "heddle/kernels/cpu/targets.h"
#include "heddle/kernels/loss.h"
#include "hwy/foreach_target.h"
// after foreach_target.h
#include "heddle/kernels/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heddle::cpu::HWY_NAMESPACE {
namespace {

// What the passes over a row of logits find; logits are taken relative to their maximum.
struct RowSums {
  float target;   // the target's logit
  float logits;   // sum of logits
  float exp;      // sum of e^logit
  float log_sum;  // log of it
};

// e[c] = e^(logit - max), unless no gradient is asked for.
template <class T>
HWY_INLINE RowSums scan_row(const T* x, int64_t vocab, int32_t target, float* e) {
  const float max = max_row(x, vocab);
  const Vec shift = splat(max);
  Chains sum_exp(zero()), sum_logits(zero());
  for_columns_in_chains(vocab, [&](int64_t c, auto part, int chain) HWY_ATTR {
    const Vec d = hn::Sub(load(x + c, part), shift);
    const Vec v = exp_normal(d);
    if (e) store(v, e + c, part);
    sum_exp.v[chain] = hn::Add(sum_exp.v[chain], keep(v, zero(), part));
    sum_logits.v[chain] = hn::Add(sum_logits.v[chain], keep(d, zero(), part));
  });
  const float sum = sum_exp.sum();
  return {static_cast<float>(x[target]) - max, sum_logits.sum(), sum, std::log(sum)};
}

// d = grad_scale (e / sum e - s / V - (1 - s) [target])
template <class T>
HWY_INLINE void gradient_row(const CrossEntropyArgs& a, const float* e, float sum, int32_t target,
                             T* d) {
  const int64_t vocab = a.logits.width;
  const float uniform = a.smoothing / static_cast<float>(vocab);
  const float scale = a.grad_scale / sum, shift = -uniform * a.grad_scale;
  const Vec scale_v = splat(scale), shift_v = splat(shift);
  for_columns(vocab, [&](int64_t c, auto part) HWY_ATTR {
    store(hn::MulAdd(load(e + c, part), scale_v, shift_v), d + c, part);
  });
  d[target] = static_cast<T>((e[target] / sum - uniform - (1 - a.smoothing)) * a.grad_scale);
}

void check_target(const CrossEntropyArgs& a, int64_t r) {
  check(a.targets[r] < a.logits.width, ErrorKind::data,
        "cross_entropy: target {} of row {}; there are {} classes", a.targets[r], r,
        a.logits.width);
}

// A row without a target: no loss, no gradient.
template <class D>
void ignore_row(const CrossEntropyArgs& a, int64_t r, D* d) {
  a.loss[r] = 0;
  if (a.nll) a.nll[r] = 0;
  if (!d) return;
  for_columns(a.logits.width, [&](int64_t c, auto part) HWY_ATTR { store(zero(), d + c, part); });
}

void write_loss(const CrossEntropyArgs& a, int64_t r, const RowSums& sums) {
  const float nll = sums.log_sum - sums.target;
  a.loss[r] = nll;
  if (a.smoothing != 0) {  // else 0 * inf where a class is masked out
    const float uniform = sums.log_sum - sums.logits / static_cast<float>(a.logits.width);
    a.loss[r] = (1 - a.smoothing) * nll + a.smoothing * uniform;
  }
  if (a.nll) a.nll[r] = nll;
}

template <class T, class D>
void cross_entropy_row(const CrossEntropyArgs& a, int64_t r) {
  const int64_t vocab = a.logits.width;
  D* d = a.dlogits.data ? a.dlogits.row<D>(r) : nullptr;
  check_target(a, r);
  if (a.targets[r] < 0) return ignore_row(a, r, d);
  float* e = d ? scratch<float>(vocab) : nullptr;
  const RowSums sums = scan_row(a.logits.row<T>(r), vocab, a.targets[r], e);
  write_loss(a, r, sums);
  if (d) gradient_row(a, e, sums.exp, a.targets[r], d);
}

// sum of p log(p / q) and of q log(q / p); log p - log q = p's logit - q's - shift.
template <class T>
HWY_INLINE std::pair<float, float> divergences(const T* x, const T* y, int64_t vocab, float shift,
                                               const float* p, float p_sum, const float* q,
                                               float q_sum) {
  Chains of_p(zero()), of_q(zero());
  const Vec shift_v = splat(shift);
  for_columns_in_chains(vocab, [&](int64_t c, auto part, int chain) HWY_ATTR {
    const Vec log_ratio = hn::Sub(hn::Sub(load(x + c, part), load(y + c, part)), shift_v);
    const Vec first = hn::Mul(load(p + c, part), log_ratio);
    const Vec second = hn::Mul(load(q + c, part), log_ratio);
    of_p.v[chain] = hn::Add(of_p.v[chain], keep(first, zero(), part));
    of_q.v[chain] = hn::Add(of_q.v[chain], keep(second, zero(), part));
  });
  return {of_p.sum() / p_sum, -of_q.sum() / q_sum};
}

// The gradient of a / 2 (KL(p || q) + KL(q || p)) by p's logits is
// a / 2 (p (log p / q - KL(p || q)) + p - q); it is added to that of the cross entropy.
template <class T, class D>
HWY_INLINE void pair_gradient(const CrossEntropyArgs& a, int32_t target, const T* x, const T* y,
                              float shift, const float* p, float p_sum, const float* q, float q_sum,
                              float kl, D* d) {
  const int64_t vocab = a.logits.width;
  const float uniform = a.smoothing / static_cast<float>(vocab), half = a.divergence / 2;
  const Vec p_scale = splat(1 / p_sum), q_scale = splat(1 / q_sum), shift_v = splat(shift + kl - 1);
  const Vec half_v = splat(half), uniform_v = splat(uniform), scale = splat(a.grad_scale);
  const auto at = [&](int64_t c, auto part) HWY_ATTR {
    const Vec pc = hn::Mul(load(p + c, part), p_scale), qc = hn::Mul(load(q + c, part), q_scale);
    const Vec log_ratio = hn::Sub(hn::Sub(load(x + c, part), load(y + c, part)), shift_v);
    const Vec pull = hn::Mul(half_v, hn::Sub(hn::Mul(pc, log_ratio), qc));
    return hn::Mul(scale, hn::Add(hn::Sub(pc, uniform_v), pull));
  };
  for_columns(vocab, [&](int64_t c, auto part) HWY_ATTR { store(at(c, part), d + c, part); });
  const float pt = p[target] / p_sum, qt = q[target] / q_sum;
  const float log_ratio =
      static_cast<float>(x[target]) - static_cast<float>(y[target]) - (shift + kl - 1);
  d[target] = static_cast<D>((pt - uniform - (1 - a.smoothing) + half * (pt * log_ratio - qt)) *
                             a.grad_scale);
}

template <class T, class D>
void cross_entropy_pair(const CrossEntropyArgs& a, int64_t r) {
  const int64_t vocab = a.logits.width, s = r + a.logits.rows / 2;
  D* d = a.dlogits.data ? a.dlogits.row<D>(r) : nullptr;
  D* other = a.dlogits.data ? a.dlogits.row<D>(s) : nullptr;
  check_target(a, r);
  const int32_t target = a.targets[r];
  check(target == a.targets[s], ErrorKind::internal, "cross_entropy: targets {} and {} of a pair",
        target, a.targets[s]);
  if (target < 0) {
    ignore_row(a, r, d);
    return ignore_row(a, s, other);
  }
  float* p = scratch<float>(2 * vocab);
  float* q = p + vocab;
  const T *x = a.logits.row<T>(r), *y = a.logits.row<T>(s);
  // Exponentials and log sums are relative to the maximum of their own row.
  const RowSums of_p = scan_row(x, vocab, target, p), of_q = scan_row(y, vocab, target, q);
  write_loss(a, r, of_p);
  write_loss(a, s, of_q);
  const float shift = (static_cast<float>(x[target]) - of_p.target + of_p.log_sum) -
                      (static_cast<float>(y[target]) - of_q.target + of_q.log_sum);
  const auto [kl_p, kl_q] = divergences(x, y, vocab, shift, p, of_p.exp, q, of_q.exp);
  a.loss[r] += a.divergence / 4 * (kl_p + kl_q);
  a.loss[s] += a.divergence / 4 * (kl_p + kl_q);
  if (!d) return;
  pair_gradient(a, target, x, y, shift, p, of_p.exp, q, of_q.exp, kl_p, d);
  pair_gradient(a, target, y, x, -shift, q, of_q.exp, p, of_p.exp, kl_q, other);
}

}  // namespace

void cross_entropy_impl(const CrossEntropyArgs& args) {
  const DType gradient_dtype = args.dlogits.data ? args.dlogits.dtype : args.logits.dtype;
  visit_float(args.logits.dtype, [&]<class T>() {
    visit_float(gradient_dtype, [&]<class D>() {
      const bool pairs = args.divergence > 0;
      parallel_blocks(pairs ? args.logits.rows / 2 : args.logits.rows,
                      rows_per_block(args.logits.width * 4), [&](int64_t begin, int64_t end) {
                        for (int64_t r = begin; r < end; ++r) {
                          pairs ? cross_entropy_pair<T, D>(args, r)
                                : cross_entropy_row<T, D>(args, r);
                        }
                      });
    });
  });
}

}  // namespace heddle::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heddle::cpu {
HWY_EXPORT(cross_entropy_impl);
}  // namespace heddle::cpu

namespace heddle {

LossKernels LossKernels::of_cpu() { return {HEDDLE_CPU_KERNEL(cross_entropy)}; }

}  // namespace heddle
#endif
