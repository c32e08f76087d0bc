// Cross entropy with label smoothing (Szegedy et al. 2016) and its gradient.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "heddle/kernels/cpu/loss.cc"
#include <cmath>

#include "heddle/base/parallel.h"
#include "heddle/kernels/cpu/cpu.h"
#include "heddle/kernels/cpu/scratch.h"
#include "heddle/kernels/cpu/targets.h"
#include "heddle/tensor/dispatch.h"
// after targets.h
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

template <class T, class D>
void cross_entropy_row(const CrossEntropyArgs& a, int64_t r) {
  const int64_t vocab = a.logits.width;
  const int32_t target = a.targets[r];
  D* d = a.dlogits.data ? a.dlogits.row<D>(r) : nullptr;
  check(target < vocab, ErrorKind::data, "cross_entropy: target {} of row {}; there are {} classes",
        target, r, vocab);
  if (target < 0) {
    a.loss[r] = 0;
    if (a.nll) a.nll[r] = 0;
    if (d) {
      for_columns(vocab, [&](int64_t c, auto part) HWY_ATTR { store(zero(), d + c, part); });
    }
    return;
  }
  float* e = d ? scratch<float>(vocab) : nullptr;
  const RowSums sums = scan_row(a.logits.row<T>(r), vocab, target, e);
  const float nll = sums.log_sum - sums.target;
  a.loss[r] = nll;
  if (a.smoothing != 0) {  // else 0 * inf where a class is masked out
    const float uniform = sums.log_sum - sums.logits / static_cast<float>(vocab);
    a.loss[r] = (1 - a.smoothing) * nll + a.smoothing * uniform;
  }
  if (a.nll) a.nll[r] = nll;
  if (d) gradient_row(a, e, sums.exp, target, d);
}

}  // namespace

void cross_entropy_impl(const CrossEntropyArgs& args) {
  const DType gradient_dtype = args.dlogits.data ? args.dlogits.dtype : args.logits.dtype;
  visit_float(args.logits.dtype, [&]<class T>() {
    visit_float(gradient_dtype, [&]<class D>() {
      parallel_blocks(args.logits.rows, rows_per_block(args.logits.width * 4),
                      [&](int64_t begin, int64_t end) {
                        for (int64_t r = begin; r < end; ++r) cross_entropy_row<T, D>(args, r);
                      });
    });
  });
}

}  // namespace heddle::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heddle::cpu {

HWY_EXPORT(cross_entropy_impl);

void cross_entropy(const CrossEntropyArgs& args) { HWY_DYNAMIC_DISPATCH(cross_entropy_impl)(args); }

}  // namespace heddle::cpu
#endif
