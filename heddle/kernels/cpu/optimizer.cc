// One step of Adam (Kingma and Ba 2014), AdamW (Loshchilov and Hutter 2017) or SGD with momentum
// (Sutskever et al. 2013), with the bf16 copy of the weights and their moving average in the same
// pass over memory.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "heddle/kernels/cpu/optimizer.cc"
#include "heddle/kernels/optimizer.h"
#include "heddle/base/parallel.h"
#include "heddle/kernels/cpu/targets.h"
#include "hwy/foreach_target.h"
// after foreach_target.h
#include "heddle/kernels/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heddle::cpu::HWY_NAMESPACE {
namespace {

// The new weights, their copy and their average.
template <class Args, class Part>
HWY_INLINE void store_next(const Args& a, int64_t i, Vec next, Vec ema_decay, Vec ema_rest,
                           Part part) {
  store(next, a.w + i, part);
  if (a.shadow) store(next, a.shadow + i, part);
  if (a.ema) {
    const Vec average = hn::MulAdd(ema_decay, load(a.ema + i, part), hn::Mul(ema_rest, next));
    store(average, a.ema + i, part);
  }
}

void adam_block(const AdamArgs& a, int64_t begin, int64_t end) {
  const Vec beta1 = splat(a.beta1), beta2 = splat(a.beta2);
  const Vec rest1 = splat(1.0f - a.beta1), rest2 = splat(1.0f - a.beta2);
  const Vec step = splat(a.lr / a.bias_correction1);
  const Vec correct2 = splat(1.0f / a.bias_correction2);
  const Vec eps = splat(a.eps), grad_scale = splat(a.grad_scale);
  const Vec coupled = splat(a.decoupled_decay ? 0.0f : a.weight_decay);
  const Vec shrink = splat(a.decoupled_decay ? a.lr * a.weight_decay : 0.0f);
  const Vec ema_decay = splat(a.ema_decay), ema_rest = splat(1.0f - a.ema_decay);
  for_columns(end - begin, [&](int64_t offset_in_block, auto part) HWY_ATTR {
    const int64_t i = begin + offset_in_block;
    const Vec w = load(a.w + i, part);
    const Vec g = hn::MulAdd(coupled, w, hn::Mul(load(a.g + i, part), grad_scale));
    const Vec m = hn::MulAdd(beta1, load(a.m + i, part), hn::Mul(rest1, g));
    const Vec v = hn::MulAdd(beta2, load(a.v + i, part), hn::Mul(hn::Mul(rest2, g), g));
    const Vec norm = hn::Add(hn::Sqrt(hn::Mul(v, correct2)), eps);
    const Vec change = hn::MulAdd(shrink, w, hn::Div(hn::Mul(step, m), norm));
    const Vec next = hn::Sub(w, change);
    store(m, a.m + i, part);
    store(v, a.v + i, part);
    store_next(a, i, next, ema_decay, ema_rest, part);
  });
}

void sgd_block(const SgdArgs& a, int64_t begin, int64_t end) {
  const Vec momentum = splat(a.momentum), lr = splat(a.lr), grad_scale = splat(a.grad_scale);
  const Vec coupled = splat(a.decoupled_decay ? 0.0f : a.weight_decay);
  const Vec shrink = splat(a.decoupled_decay ? a.lr * a.weight_decay : 0.0f);
  const Vec ema_decay = splat(a.ema_decay), ema_rest = splat(1.0f - a.ema_decay);
  for_columns(end - begin, [&](int64_t offset_in_block, auto part) HWY_ATTR {
    const int64_t i = begin + offset_in_block;
    const Vec w = load(a.w + i, part);
    const Vec g = hn::MulAdd(coupled, w, hn::Mul(load(a.g + i, part), grad_scale));
    const Vec v = hn::MulAdd(momentum, load(a.v + i, part), g);
    const Vec step = a.nesterov ? hn::MulAdd(momentum, v, g) : v;
    const Vec next = hn::Sub(w, hn::MulAdd(shrink, w, hn::Mul(lr, step)));
    store(v, a.v + i, part);
    store_next(a, i, next, ema_decay, ema_rest, part);
  });
}

}  // namespace

void adam_impl(const AdamArgs& args) {
  parallel_blocks(args.n, 8192, [&](int64_t b, int64_t e) { adam_block(args, b, e); });
}

void sgd_impl(const SgdArgs& args) {
  parallel_blocks(args.n, 8192, [&](int64_t b, int64_t e) { sgd_block(args, b, e); });
}

}  // namespace heddle::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heddle::cpu {
HWY_EXPORT(adam_impl);
HWY_EXPORT(sgd_impl);
}  // namespace heddle::cpu

namespace heddle {

OptimizerKernels OptimizerKernels::of_cpu() {
  return {HEDDLE_CPU_KERNEL(adam), HEDDLE_CPU_KERNEL(sgd)};
}

}  // namespace heddle
#endif
