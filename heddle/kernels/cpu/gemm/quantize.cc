// Rounds rows by their largest magnitude.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "heddle/kernels/cpu/gemm/quantize.cc"
#include <bit>
#include <cmath>
#include <limits>

#include "heddle/kernels/cpu/targets.h"
#include "hwy/foreach_target.h"
//
#include "heddle/kernels/cpu/gemm/quantize.h"
#include "heddle/kernels/cpu/scratch.h"
#include "heddle/kernels/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heddle::cpu::HWY_NAMESPACE {
namespace {

using I8 = hn::Rebind<int8_t, F32>;

// The largest |x|; NaN if one is not finite. Magnitudes are in the order of their bits.
template <class T>
float largest_magnitude(const T* x, int64_t n) {
  using Bits = std::conditional_t<sizeof(T) == 2, uint16_t, uint32_t>;
  constexpr Bits kMagnitude = std::numeric_limits<Bits>::max() >> 1;
  const hn::ScalableTag<Bits> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto* bits = reinterpret_cast<const Bits*>(x);
  auto most = hn::Zero(d);
  int64_t c = 0;
  for (; c + lanes <= n; c += lanes) {
    most = hn::Max(most, hn::And(hn::LoadU(d, bits + c), hn::Set(d, kMagnitude)));
  }
  Bits largest = hn::GetLane(hn::MaxOfLanes(d, most));
  for (; c < n; ++c) largest = std::max<Bits>(largest, bits[c] & kMagnitude);
  const float value = std::bit_cast<float>(static_cast<uint32_t>(largest) << (32 - 8 * sizeof(T)));
  return std::isfinite(value) ? value : std::numeric_limits<float>::quiet_NaN();
}

// 1.5 * 2^23: added to less than 2^22 it leaves the nearest integer, ties to even, in the low bits.
constexpr float kRoundsToInteger = 12582912.0f;
// Compilers would join the product and the sum where the CPU can, which rounds once, not twice.
VecU32 with_integer(Vec v, Vec factor) {
  Vec product = hn::Mul(v, factor);
#if HWY_TARGET <= HWY_AVX3 && HWY_ARCH_X86
  __asm__("" : "+v"(product.raw));
#elif HWY_ARCH_X86
  __asm__("" : "+x"(product.raw));
#elif HWY_ARCH_ARM
  __asm__("" : "+w"(product.raw));
#endif
  return hn::BitCast(U32(), hn::Add(product, splat(kRoundsToInteger)));
}

// As many whole vectors of bf16 as n elements fill, rounded; returns how many elements that are.
// Even and odd elements apart: they lie in the halves of 32 bits, where the results belong, too.
int64_t quantize_pairs(const bf16* x, int64_t n, float scale, int8_t zero_point, int8_t* q) {
  const hn::Repartition<uint16_t, F32> d16;
  const hn::Rebind<int8_t, hn::Repartition<int16_t, F32>> d8;
  const auto count = static_cast<int64_t>(hn::Lanes(d16));
  const Vec factor = splat(scale);
  const auto flip = hn::Set(d8, zero_point);
  int64_t c = 0;
  for (; c + count <= n; c += count) {
    const auto both = hn::BitCast(U32(), hn::LoadU(d16, reinterpret_cast<const uint16_t*>(x + c)));
    const VecU32 upper = hn::And(both, hn::Set(U32(), 0xffff0000u));
    const VecU32 even = with_integer(hn::BitCast(F32(), hn::ShiftLeft<16>(both)), factor);
    const VecU32 odd = with_integer(hn::BitCast(F32(), upper), factor);
    const auto words =
        hn::OddEven(hn::BitCast(d16, hn::ShiftLeft<16>(odd)), hn::BitCast(d16, even));
    const auto bytes = hn::DemoteTo(d8, hn::BitCast(hn::Repartition<int16_t, F32>(), words));
    hn::StoreU(hn::Xor(bytes, flip), d8, q + c);
  }
  return c;
}
int64_t quantize_pairs(const float*, int64_t, float, int8_t, int8_t*) { return 0; }

template <class T>
void quantize_row(const T* x, int64_t n, int8_t zero_point, int8_t* q, int64_t width,
                  float* scale) {
  const float largest = largest_magnitude(x, n);
  const float factor = largest > 0 ? 127.0f / largest : 0;
  const auto flip = hn::Set(I8(), zero_point);  // the sign bit: plus 128, unsigned
  const int64_t done = quantize_pairs(x, n, factor, zero_point, q);
  for_columns(n - done, [&](int64_t at, auto part) HWY_ATTR {
    const int64_t c = done + at;
    const VecU32 integer = hn::Sub(with_integer(load(x + c, part), splat(factor)),
                                   hn::Set(U32(), std::bit_cast<uint32_t>(kRoundsToInteger)));
    const auto bytes = hn::Xor(hn::DemoteTo(I8(), hn::BitCast(I32(), integer)), flip);
    if constexpr (std::is_same_v<decltype(part), Full>) {
      hn::StoreU(bytes, I8(), q + c);
    } else {
      store_tail(bytes, I8(), q + c, part.count);
    }
  });
  if (width > n) std::memset(q + n, zero_point, static_cast<size_t>(width - n));
  *scale = largest * (1.0f / 127);
}

}  // namespace

void quantize_rows_impl(const Rows& x, int8_t zero_point, const Rows& q, float* scale) {
  visit_float(x.dtype, [&]<class T>() {
    for (int64_t r = 0; r < x.rows; ++r) {
      quantize_row(x.row<T>(r), x.width, zero_point, q.row<int8_t>(r), q.width, scale + r);
    }
  });
}

}  // namespace heddle::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heddle::cpu {

HWY_EXPORT(quantize_rows_impl);
void quantize_rows(const Rows& x, int8_t zero_point, const Rows& q, float* scale) {
  HWY_DYNAMIC_DISPATCH(quantize_rows_impl)(x, zero_point, q, scale);
}

void pack_int8(const Rows& b, bool /*transposed*/, void* panel) {
  const int64_t count = b.rows < kInt8Columns ? b.rows : kInt8Columns;
  const int64_t width = (b.width + 63) / 64 * 64, quads = width / 4;
  thread_local Buffer memory;
  const Rows q = {memory.reserve(kInt8Columns * width), kInt8Columns, width, width, DType::i8};
  Int8Columns columns = {};
  quantize_rows(b.slice(0, count), 0, q.slice(0, count), columns.scale);
  std::memset(q.row<int8_t>(count), 0, static_cast<size_t>((kInt8Columns - count) * width));
  for (int64_t c = 0; c < count; ++c) {
    const int8_t* from = q.row<int8_t>(c);
    int32_t sum = 0;
    for (int64_t l = 0; l < width; ++l) sum += from[l];
    columns.sum128[c] = 128 * sum;
  }
  auto* to = static_cast<uint32_t*>(panel);
  for (int64_t l = 0; l < quads; l += 16) {
    for (int64_t half = 0; half < kInt8Columns; half += 16) {
      for (int64_t quad = l; quad < l + 16; ++quad) {
        for (int64_t c = half; c < half + 16; ++c) {
          std::memcpy(to++, q.row<int8_t>(c) + 4 * quad, 4);
        }
      }
    }
  }
  std::memcpy(to, &columns, sizeof columns);
}

}  // namespace heddle::cpu
#endif
