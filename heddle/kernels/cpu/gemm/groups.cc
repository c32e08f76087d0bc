// Rounds rows group by group.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "heddle/kernels/cpu/gemm/groups.cc"
#include <cmath>

#include "heddle/kernels/cpu/targets.h"
#include "hwy/foreach_target.h"
//
#include "heddle/kernels/cpu/gemm/groups.h"
#include "heddle/kernels/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heddle::cpu::HWY_NAMESPACE {
namespace {

using I8 = hn::Rebind<int8_t, F32>;

// A group of whole vectors.
template <class T>
RoundedGroup round_group(const T* x, int64_t n, int zero_point, int8_t* q) {
  Vec most = zero(), nothing = zero();  // the latter NaN if an element is not finite
  for (int64_t c = 0; c < n; c += lanes()) {
    const Vec v = load(x + c, Full{});
    most = hn::Max(most, hn::Abs(v));
    nothing = hn::Add(nothing, hn::Sub(v, v));
  }
  const float largest = max_lanes(most);
  if (sum_lanes(nothing) != 0) {
    std::memset(q, 0, static_cast<size_t>(n));
    return {std::numeric_limits<float>::quiet_NaN(), 0};
  }
  const Vec factor = splat(largest > 0 ? 127.0f / largest : 0);
  auto sum = hn::Zero(I32());
  for (int64_t c = 0; c < n; c += lanes()) {
    const auto v = hn::NearestInt(hn::Mul(load(x + c, Full{}), factor));
    sum = hn::Add(sum, v);
    hn::StoreU(hn::DemoteTo(I8(), v), I8(), q + c);
  }
  return {largest * (1.0f / 127), -zero_point * hn::GetLane(hn::SumOfLanes(I32(), sum))};
}

template <class T>
void round_row(const T* x, int64_t n, int64_t group, int zero_point, int8_t* q, int64_t width) {
  auto* behind = reinterpret_cast<RoundedGroup*>(q + width);
  for (int64_t c = 0; c < width; c += group, ++behind) {
    if (c + group <= n) {
      *behind = round_group(x + c, group, zero_point, q + c);
      continue;
    }
    T filled[64] = {};
    if (c < n) std::memcpy(filled, x + c, static_cast<size_t>(n - c) * sizeof(T));
    *behind = round_group(filled, group, zero_point, q + c);
  }
}

}  // namespace

void round_groups_impl(const Rows& x, int64_t group, int zero_point, const Rows& q) {
  visit_float(x.dtype, [&]<class T>() {
    for (int64_t r = 0; r < x.rows; ++r) {
      round_row(x.row<T>(r), x.width, group, zero_point, q.row<int8_t>(r), q.width);
    }
  });
}

}  // namespace heddle::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heddle::cpu {

HWY_EXPORT(round_groups_impl);
void round_groups(const Rows& x, int64_t group, int zero_point, const Rows& q) {
  HWY_DYNAMIC_DISPATCH(round_groups_impl)(x, group, zero_point, q);
}

}  // namespace heddle::cpu
#endif
