// Matrices with their axes swapped, in squares of a vector's length.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "heddle/kernels/cpu/transpose.cc"
#include <algorithm>

#include "heddle/base/parallel.h"
#include "heddle/kernels/cpu/targets.h"
#include "heddle/kernels/transpose.h"
#include "hwy/foreach_target.h"
// after foreach_target.h
#include "heddle/kernels/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heddle::cpu::HWY_NAMESPACE {
namespace {

// kSide rows of as many elements, 128 bits each: log2(kSide) perfect shuffles of two halves of the
// rows swap the axes.
template <class Bits, int kSide>
HWY_INLINE void transpose_square(const Bits* from, int64_t from_stride, Bits* to,
                                 int64_t to_stride) {
  const hn::FixedTag<Bits, kSide> d;
  hn::Vec<decltype(d)> v[kSide], w[kSide];
  for (int i = 0; i < kSide; ++i) v[i] = hn::LoadU(d, from + i * from_stride);
  for (int step = 1; step < kSide; step *= 2) {
    for (int i = 0; i < kSide / 2; ++i) {
      w[2 * i] = hn::InterleaveLower(d, v[i], v[i + kSide / 2]);
      w[2 * i + 1] = hn::InterleaveUpper(d, v[i], v[i + kSide / 2]);
    }
    for (int i = 0; i < kSide; ++i) v[i] = w[i];
  }
  for (int i = 0; i < kSide; ++i) hn::StoreU(v[i], d, to + i * to_stride);
}

// Columns [begin, end) of a matrix whose first row in x is `row`, at most as many as a line of the
// cache has: each of its lines is then read once.
template <class T>
void transpose_columns(const TransposeArgs& a, int64_t row, int64_t begin, int64_t end, T* y) {
  using Bits = std::conditional_t<sizeof(T) == 2, uint16_t, uint32_t>;
  constexpr int kSide = 16 / sizeof(T);
  const int64_t in = a.x.stride, out = a.y.stride;
  const auto* const x = reinterpret_cast<const Bits*>(a.x.row<T>(row));
  auto* const to = reinterpret_cast<Bits*>(y);
  const int64_t whole_rows = a.height / kSide * kSide;
  const int64_t whole = begin + (end - begin) / kSide * kSide;
  for (int64_t r = 0; r < whole_rows; r += kSide) {
    for (int64_t c = begin; c < whole; c += kSide) {
      transpose_square<Bits, kSide>(x + r * in + c, in, to + c * out + r, out);
    }
  }
  for (int64_t c = begin; c < end; ++c) {
    for (int64_t r = c < whole ? whole_rows : 0; r < a.height; ++r) {
      to[c * out + r] = x[r * in + c];
    }
  }
}

}  // namespace

void transpose_impl(const TransposeArgs& a) {
  visit_float(a.x.dtype, [&]<class T>() {
    if (a.height == 0 || a.x.width == 0) return;
    constexpr int64_t kColumns = 64 / sizeof(T);
    const int64_t parts = (a.x.width + kColumns - 1) / kColumns;
    const int64_t grain = std::max<int64_t>(1, (1 << 14) / (a.height * kColumns));
    parallel_blocks(a.x.rows / a.height * parts, grain, [&](int64_t from, int64_t to) {
      for (int64_t i = from; i < to; ++i) {
        const int64_t matrix = i / parts, begin = i % parts * kColumns;
        transpose_columns<T>(a, matrix * a.height, begin, std::min(begin + kColumns, a.x.width),
                             a.y.row<T>(matrix * a.x.width));
      }
    });
  });
}

}  // namespace heddle::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heddle::cpu {
HWY_EXPORT(transpose_impl);
}  // namespace heddle::cpu

namespace heddle {

TransposeKernels TransposeKernels::of_cpu() { return {HEDDLE_CPU_KERNEL(transpose)}; }

}  // namespace heddle
#endif
