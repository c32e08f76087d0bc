// Matrix products in int8 by vectors of 16-bit integers: rows of a, one broadcast pair of inner
// elements at a time, times two vectors of columns of a panel.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "heddle/kernels/cpu/gemm/gemm_int8.cc"
#include <utility>

#include "heddle/kernels/cpu/targets.h"
#include "hwy/foreach_target.h"
//
#include "heddle/kernels/cpu/gemm/gemm_block.h"
#include "heddle/kernels/cpu/gemm/quantize.h"
#include "heddle/kernels/cpu/simd-inl.h"
//
#include "heddle/kernels/cpu/gemm/pairs-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heddle::cpu::HWY_NAMESPACE {
namespace {

using HalfI8 = hn::Rebind<int8_t, I16>;

// Sums in registers: 12 x 2 vectors of 32 registers, or 6 x 2 of 16.
#if HWY_TARGET <= HWY_AVX3
constexpr int kMostRows = 12;
#else
constexpr int kMostRows = 6;
#endif
constexpr int64_t kInner = 32;  // a multiple of the lanes of I16

// Columns of a panel: [inner / 2][columns][2], and then their scales.
int64_t panel_columns() { return 2 * lanes(); }

void pack(const Rows& b, bool /*transposed*/, void* panel) {
  const int64_t columns = panel_columns(), count = std::min(columns, b.rows);
  const int64_t width = (b.width + kInner - 1) / kInner * kInner;
  auto* to = static_cast<int8_t*>(panel);
  auto* const scale = reinterpret_cast<float*>(to + columns * width);
  std::fill_n(scale, columns, 0.0f);
  const Rows q = {scratch<int8_t, 10>(columns * width), columns, width, width, DType::i8};
  quantize_rows(b.slice(0, count), 0, q.slice(0, count), scale);
  std::memset(q.row<int8_t>(count), 0, static_cast<size_t>((columns - count) * width));
  for (int64_t l = 0; l < width; l += 2) {
    for (int64_t c = 0; c < columns; ++c, to += 2) std::memcpy(to, q.row<int8_t>(c) + l, 2);
  }
}

void widen_row(const int8_t* from, int64_t inner, int16_t* to) {
  const I16 d;
  for (int64_t l = 0; l < inner; l += static_cast<int64_t>(hn::Lanes(d))) {
    hn::StoreU(hn::PromoteTo(d, hn::LoadU(HalfI8(), from + l)), d, to + l);
  }
}

// A pair of a for each column.
HWY_INLINE hn::Vec<I16> broadcast_pair(const int16_t* from) {
  int32_t pair;
  std::memcpy(&pair, from, sizeof pair);
  return hn::BitCast(I16(), hn::Set(I32(), pair));
}

// Products of so few rows wait for weights, which are fetched so many bytes ahead.
constexpr int kFewRows = 3;
constexpr int64_t kAhead = 2048;

// Rows of a, 16-bit and `inner` apart, times a panel; the sums: [kRows][columns].
template <int kRows>
HWY_NOINLINE void rows_times_panel(const int16_t* a, const int8_t* b, int64_t inner,
                                   int32_t* sums) {
  const I16 d;
  const auto n = static_cast<int64_t>(hn::Lanes(d));
  VecI32 sum[kRows][2];
#pragma GCC unroll 12
  for (int r = 0; r < kRows; ++r) sum[r][0] = sum[r][1] = hn::Zero(I32());
  for (int64_t l = 0; l < inner; l += 2, b += 2 * n) {
    if constexpr (kRows <= kFewRows) __builtin_prefetch(b + kAhead);
    const auto first = hn::PromoteTo(d, hn::LoadU(HalfI8(), b));
    const auto second = hn::PromoteTo(d, hn::LoadU(HalfI8(), b + n));
#pragma GCC unroll 12
    for (int r = 0; r < kRows; ++r) {
      const auto x = broadcast_pair(a + r * inner + l);
      sum[r][0] = add_pairs(x, first, sum[r][0]);
      sum[r][1] = add_pairs(x, second, sum[r][1]);
    }
  }
#pragma GCC unroll 12
  for (int r = 0; r < kRows; ++r) {
    hn::StoreU(sum[r][0], I32(), sums + 2 * r * lanes());
    hn::StoreU(sum[r][1], I32(), sums + (2 * r + 1) * lanes());
  }
}

// The same for as many rows as are left, at most kMostRows.
void few_rows_times_panel(int64_t rows, const int16_t* a, const int8_t* b, int64_t inner,
                          int32_t* sums) {
  [&]<int... n>(std::integer_sequence<int, n...>) {
    ((rows == n + 1 ? rows_times_panel<n + 1>(a, b, inner, sums) : void()), ...);
  }
  (std::make_integer_sequence<int, kMostRows>());
}

// Sums of rows [row, row + rows) in units of the scales, plus bias, into columns of c from
// `column`.
template <class T>
void put_sums(const GemmBlock& g, int64_t row, int64_t rows, int64_t column, const float* scale,
              const int32_t* sums) {
  const int64_t columns = panel_columns();
  for (int64_t r = row; r < row + rows; ++r, sums += columns) {
    const Vec unit = splat(g.scale[r]);
    for_columns(std::min(columns, g.c.width - column), [&](int64_t c, auto part) HWY_ATTR {
      const Vec sum = hn::ConvertTo(F32(), hn::LoadU(I32(), sums + c));
      const Vec bias = g.bias == nullptr ? zero() : load(g.bias + column + c, part);
      store(hn::MulAdd(sum, hn::Mul(unit, load(scale + c, Full{})), bias),
            g.c.row<T>(r) + column + c, part);
    });
  }
}

void block(const GemmBlock& g) {
  auto* const a = scratch<int16_t, 9>(kMostRows * g.inner);
  for (int64_t row = 0; row < g.c.rows; row += kMostRows) {
    const int64_t rows = std::min<int64_t>(kMostRows, g.c.rows - row);
    for (int64_t r = 0; r < rows; ++r) {
      widen_row(static_cast<const int8_t*>(g.a) + (row + r) * g.a_stride, g.inner, a + r * g.inner);
    }
    const auto* b = static_cast<const int8_t*>(g.b);
    for (int64_t column = 0; column < g.c.width; column += panel_columns(), b += g.panel_bytes) {
      HWY_ALIGN int32_t sums[kMostRows * 2 * 16];
      few_rows_times_panel(rows, a, b, g.inner, sums);
      const auto* scale = reinterpret_cast<const float*>(b + panel_columns() * g.inner);
      visit_float(g.c.dtype, [&]<class T>() { put_sums<T>(g, row, rows, column, scale, sums); });
    }
  }
}

}  // namespace

const GemmCode& gemm_int8_code() {
  static const GemmCode code = {.columns = panel_columns(),
                                .inner_step = kInner,
                                .inner_chunk = kMostInt8Inner,
                                .block_rows = 240,
                                .group_rows = 1,
                                .packed = DType::i8,
                                .tail = panel_columns() * static_cast<int64_t>(sizeof(float)),
                                .pack = pack,
                                .pack_transposed = nullptr,
                                .block = block};
  return code;
}

}  // namespace heddle::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heddle::cpu {

HWY_EXPORT(gemm_int8_code);
const GemmCode& gemm_int8() { return HWY_DYNAMIC_DISPATCH(gemm_int8_code)(); }

}  // namespace heddle::cpu
#endif
