// Activations and dropout, forward and backward.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "heddle/kernels/cpu/activation.cc"
#include "heddle/kernels/activation.h"

#include "heddle/base/parallel.h"
#include "heddle/kernels/cpu/gelu_pieces.h"
#include "heddle/kernels/cpu/scratch.h"
#include "heddle/kernels/cpu/targets.h"
#include "hwy/foreach_target.h"
// after foreach_target.h
#include "heddle/kernels/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heddle::cpu::HWY_NAMESPACE {
namespace {

// Each activation as its value and its derivative.
struct None {
  static HWY_INLINE Vec value(Vec x) { return x; }
  static HWY_INLINE Vec slope(Vec) { return splat(1.0f); }
};
struct Relu {
  static HWY_INLINE Vec value(Vec x) { return hn::Max(zero(), x); }  // NaN stays
  static HWY_INLINE Vec slope(Vec x) { return hn::IfThenElseZero(hn::Gt(x, zero()), splat(1.0f)); }
};
// x Phi(x) (Hendrycks and Gimpel 2016)
struct Gelu {
  static HWY_INLINE Vec value(Vec x) { return hn::Mul(x, normal_vec(x).cdf); }
  static HWY_INLINE Vec slope(Vec x) {
    const Normal n = normal_vec(x);
    return hn::MulAdd(hn::Mul(x, splat(0x1.988454p-2f)), n.gauss, n.cdf);  // 1 / sqrt(2 pi)
  }
};
// x (1 + tanh u) / 2 = x sigmoid(2u), u = sqrt(2 / pi) (x + 0.044715 x^3)
struct GeluNew {
  static constexpr float kTwoC = 2 * 0x1.988454p-1f;
  static HWY_INLINE Vec value(Vec x) { return hn::Mul(x, gate(x)); }
  static HWY_INLINE Vec slope(Vec x) {
    const Vec s = gate(x);
    const Vec x2 = hn::Min(hn::Mul(x, x), splat(1e6f));  // finite, where s (1 - s) is 0
    const Vec du = hn::MulAdd(x2, splat(3 * 0.044715f * kTwoC), splat(kTwoC));
    const Vec bell = hn::Mul(s, hn::Sub(splat(1.0f), s));
    return hn::MulAdd(hn::Mul(x, bell), du, s);
  }
  static HWY_INLINE Vec gate(Vec x) {
    const Vec c = hn::MulAdd(hn::Mul(x, x), splat(0.044715f * kTwoC), splat(kTwoC));
    return sigmoid_vec(hn::Mul(x, c));
  }
};
#if HWY_TARGET == HWY_AVX3
// The same out of tables of 32, for rows in bf16: half the time of erfc and exp.
template <const GeluPieces& (*pieces)()>
struct GeluValueByPieces {
  const GeluTable table{pieces()};
  HWY_INLINE Vec value(Vec x) const { return Vec{table.value(x.raw)}; }
};
template <const GeluPieces& (*pieces)()>
struct GeluSlopeByPieces {
  const GeluTable table{pieces()};
  HWY_INLINE Vec slope(Vec x) const { return Vec{table.at(x.raw)}; }
};
#endif
// x sigmoid(x) (Elfwing et al. 2017)
struct Silu {
  static HWY_INLINE Vec value(Vec x) { return hn::Mul(x, sigmoid_vec(x)); }
  static HWY_INLINE Vec slope(Vec x) {
    const Vec s = sigmoid_vec(x);
    return hn::MulAdd(hn::Mul(x, s), hn::Sub(splat(1.0f), s), s);
  }
};
struct Tanh {
  static HWY_INLINE Vec value(Vec x) { return tanh_vec(x); }
  static HWY_INLINE Vec slope(Vec x) {
    const Vec t = tanh_vec(x);
    return hn::NegMulAdd(t, t, splat(1.0f));
  }
};

// How an activation is computed for rows of T.
template <class Op, class T>
struct ComputedFor {
  using Value = Op;
  using Slope = Op;
};
#if HWY_TARGET == HWY_AVX3
template <>
struct ComputedFor<Gelu, bf16> {
  using Value = GeluValueByPieces<pieces_of_normal_tail>;
  using Slope = GeluSlopeByPieces<pieces_of_gelu_slope>;
};
template <>
struct ComputedFor<GeluNew, bf16> {
  using Value = GeluValueByPieces<pieces_of_tanh_tail>;
  using Slope = GeluSlopeByPieces<pieces_of_tanh_slope>;
};
#endif

// Calls f.operator()<Op>() with the type of the activation.
template <class F>
void visit_activation(Activation kind, const F& f) {
  switch (kind) {
    case Activation::none: return f.template operator()<None>();
    case Activation::relu: return f.template operator()<Relu>();
    case Activation::gelu: return f.template operator()<Gelu>();
    case Activation::gelu_new: return f.template operator()<GeluNew>();
    case Activation::silu: return f.template operator()<Silu>();
    case Activation::tanh: return f.template operator()<Tanh>();
  }
}

}  // namespace

void activation_impl(Activation kind, Rows x, const Dropout& dropout, Rows y) {
  visit_activation(kind, [&]<class Op>() {
    for_each_row(
        [&]<class T>(int64_t r) HWY_ATTR {
          const typename ComputedFor<Op, T>::Value op;
          DropoutRow mask(dropout, r);
          const auto px = at<T>(x, r);
          const auto py = at<T>(y, r);
          for_columns(y.width, [&](int64_t c, auto part) HWY_ATTR {
            store(mask.apply(op.value(load(offset(px, c), part)), c), offset(py, c), part);
          });
        },
        y, x);
  });
}

void activation_backward_impl(Activation kind, Rows x, Rows dy, const Dropout& dropout, Rows dx) {
  visit_activation(kind, [&]<class Op>() {
    for_each_row(
        [&]<class T>(int64_t r) HWY_ATTR {
          const typename ComputedFor<Op, T>::Slope op;
          DropoutRow mask(dropout, r);
          const auto px = at<T>(x, r);
          const auto pdy = at<T>(dy, r);
          const auto pdx = at<T>(dx, r);
          for_columns(dx.width, [&](int64_t c, auto part) HWY_ATTR {
            const Vec d = mask.apply(load(offset(pdy, c), part), c);
            store(hn::Mul(d, op.slope(load(offset(px, c), part))), offset(pdx, c), part);
          });
        },
        dx, x, dy);
  });
}

}  // namespace heddle::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heddle::cpu {
HWY_EXPORT(activation_impl);
HWY_EXPORT(activation_backward_impl);
}  // namespace heddle::cpu

namespace heddle {

ActivationKernels ActivationKernels::of_cpu() {
  return {HEDDLE_CPU_KERNEL(activation), HEDDLE_CPU_KERNEL(activation_backward),
          .dropout = [](auto... args) {
            return HWY_DYNAMIC_DISPATCH(cpu::activation_impl)(Activation::none, args...);
          }};
}

}  // namespace heddle
#endif
