// Products of pairs of 16-bit integers. For use behind simd-inl.h, as that is used.
#if defined(HEDDLE_KERNELS_CPU_GEMM_PAIRS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEDDLE_KERNELS_CPU_GEMM_PAIRS_INL_H_
#undef HEDDLE_KERNELS_CPU_GEMM_PAIRS_INL_H_
#else
#define HEDDLE_KERNELS_CPU_GEMM_PAIRS_INL_H_
#endif

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace heddle::cpu::HWY_NAMESPACE {

using I16 = hn::Repartition<int16_t, I32>;
using VecI32 = hn::Vec<I32>;

/// sum + the two 16-bit halves of each lane of x times those of y.
HWY_INLINE VecI32 add_pairs(hn::Vec<I16> x, hn::Vec<I16> y, VecI32 sum) {
#if HWY_ARCH_X86
  VecI32 none = hn::Zero(I32());
  return hn::ReorderWidenMulAccumulate(I32(), x, y, sum, none);
#else  // which pairs come together there is not said
  const auto low = [](VecI32 v) HWY_ATTR { return hn::ShiftRight<16>(hn::ShiftLeft<16>(v)); };
  const auto high = [](VecI32 v) HWY_ATTR { return hn::ShiftRight<16>(v); };
  const VecI32 a = hn::BitCast(I32(), x), b = hn::BitCast(I32(), y);
  return hn::Add(sum, hn::Add(hn::Mul(low(a), low(b)), hn::Mul(high(a), high(b))));
#endif
}

}  // namespace heddle::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
