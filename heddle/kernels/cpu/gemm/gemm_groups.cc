// Products with weights of four or eight bits in groups by vectors of the best instruction set:
// pairs of 16-bit integers, 32 bits for a group, f32 from there.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "heddle/kernels/cpu/gemm/gemm_groups.cc"
#include <utility>

#include "heddle/kernels/cpu/targets.h"
#include "hwy/foreach_target.h"
//
#include "heddle/kernels/cpu/gemm/gemm_block.h"
#include "heddle/kernels/cpu/gemm/groups.h"
#include "heddle/kernels/cpu/simd-inl.h"
//
#include "heddle/kernels/cpu/gemm/pairs-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heddle::cpu::HWY_NAMESPACE {
namespace {

constexpr int64_t kColumns = 32;  // of a panel
constexpr int kMostRows = 4;

// Vectors of columns that a pass of some rows takes: with each row's sums, what registers hold.
constexpr int vectors_of(int rows) {
#if HWY_TARGET <= HWY_AVX3
  return rows > 0 ? 2 : 0;  // a panel, in 32 registers
#else
  return rows == 1 ? 4 : rows == 2 ? 2 : 1;  // in 16
#endif
}

// The first and third of four signed bytes of each lane as 16 bits; the second and fourth.
template <class D>
HWY_INLINE hn::Vec<hn::Repartition<int16_t, D>> even_bytes(D, hn::Vec<D> x) {
  return hn::ShiftRight<8>(hn::ShiftLeft<8>(hn::BitCast(hn::Repartition<int16_t, D>(), x)));
}
template <class D>
HWY_INLINE hn::Vec<hn::Repartition<int16_t, D>> odd_bytes(D, hn::Vec<D> x) {
  return hn::ShiftRight<8>(hn::BitCast(hn::Repartition<int16_t, D>(), x));
}

// Activations as pairs of 16 bits: the first and third of each four, then all second and fourth.
// n: a multiple of 32
void spread_into_pairs(const int8_t* a, int64_t n, int32_t* pairs) {
  const hn::CappedTag<int32_t, 8> d;
  for (int64_t q = 0; q < n / 4; q += static_cast<int64_t>(hn::Lanes(d))) {
    const auto four = hn::LoadU(d, reinterpret_cast<const int32_t*>(a + 4 * q));
    hn::StoreU(hn::BitCast(d, even_bytes(d, four)), d, pairs + q);
    hn::StoreU(hn::BitCast(d, odd_bytes(d, four)), d, pairs + n / 4 + q);
  }
}

// Four weights in each lane of x, none below -128 or above 127, times those of a quad of each row:
// its first pair, and its second so far behind.
template <int kRows, int kVectors>
HWY_INLINE void add_quad(const VecI32 (&x)[kVectors], const int32_t* pairs, int64_t second,
                         int64_t row_pairs, VecI32 (&dots)[kRows][kVectors]) {
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) {
    const auto y = hn::BitCast(I16(), hn::Set(I32(), pairs[r * row_pairs]));
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v)
      dots[r][v] = add_pairs(even_bytes(I32(), x[v]), y, dots[r][v]);
  }
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) {
    const auto y = hn::BitCast(I16(), hn::Set(I32(), pairs[r * row_pairs + second]));
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v)
      dots[r][v] = add_pairs(odd_bytes(I32(), x[v]), y, dots[r][v]);
  }
}

// Where the columns of some vectors begin: their values, scales and pairs of activations.
struct VectorColumns {
  const uint8_t* b;
  const bf16* scales;
  const int32_t* pairs;
};

// A row or two wait for weights, which are fetched so many bytes ahead.
constexpr int kFewRows = 2;
constexpr int64_t kAhead = 4096;

// Rows [row, row + kRows) times some vectors of columns of a panel; the results: [kRows][columns].
template <int kBits, int kGroup, int kRows>
void rows_times_columns(const GemmBlock& g, int64_t row, const VectorColumns& at, float* results) {
  constexpr int kVectors = vectors_of(kRows);
  const int64_t row_pairs = g.inner / 2, second = g.inner / 4;
  const int32_t* pairs = at.pairs;
  Vec sum[kRows][kVectors];
#pragma GCC unroll 4
  for (auto& sums : sum) {
#pragma GCC unroll 4
    for (Vec& one : sums) one = zero();
  }
  const uint8_t* b = at.b;
  for (int64_t i = 0; i < g.inner / kGroup; ++i) {
    VecI32 dots[kRows][kVectors];
    const RoundedGroup* group[kRows];
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) {
      const auto* a = static_cast<const char*>(g.a) + (row + r) * g.a_stride;
      group[r] = reinterpret_cast<const RoundedGroup*>(a + g.inner) + i;
      // Eight bits have their sign here.
      const VecI32 start = hn::Set(I32(), kBits == 8 ? 0 : group[r]->offset);
#pragma GCC unroll 4
      for (VecI32& dot : dots[r]) dot = start;
    }
#pragma GCC unroll 1  // unrolled, GCC 12 adds up products that it has to put down meanwhile
    for (int step = 0; step < kGroup * kBits / 32; ++step, b += 4 * kColumns, ++pairs) {
      if constexpr (kRows <= kFewRows) {
        __builtin_prefetch(b + kAhead);
        __builtin_prefetch(b + kAhead + 64);
      }
      VecI32 x[kVectors];
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) {
        x[v] = hn::LoadU(I32(), reinterpret_cast<const int32_t*>(b) + v * lanes());
      }
      if constexpr (kBits == 8) {
        add_quad<kRows, kVectors>(x, pairs, second, row_pairs, dots);
      } else {
        const VecI32 half = hn::Set(I32(), 0x0f0f0f0f);
        VecI32 nibbles[kVectors];
#pragma GCC unroll 4
        for (int v = 0; v < kVectors; ++v) nibbles[v] = hn::And(x[v], half);
        add_quad<kRows, kVectors>(nibbles, pairs, second, row_pairs, dots);
#pragma GCC unroll 4
        for (int v = 0; v < kVectors; ++v) {
          const auto upper = hn::ShiftRight<4>(hn::BitCast(U32(), x[v]));
          nibbles[v] = hn::And(hn::BitCast(I32(), upper), half);
        }
        add_quad<kRows, kVectors>(nibbles, pairs + kGroup / 8, second, row_pairs, dots);
      }
    }
    if constexpr (kBits == 4) pairs += kGroup / 8;
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      const Vec scale = load(at.scales + i * kColumns + v * lanes(), Full{});
#pragma GCC unroll 4
      for (int r = 0; r < kRows; ++r) {
        const Vec unit = hn::Mul(splat(group[r]->scale), scale);
        sum[r][v] = hn::MulAdd(hn::ConvertTo(F32(), dots[r][v]), unit, sum[r][v]);
      }
    }
  }
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      hn::StoreU(sum[r][v], F32(), results + (r * kVectors + v) * lanes());
    }
  }
}

// The same for as many rows as are left, at most kMostRows.
template <int kBits, int kGroup>
void few_rows_times_columns(const GemmBlock& g, int64_t row, int64_t rows, const VectorColumns& at,
                            float* results) {
  [&]<int... n>(std::integer_sequence<int, n...>) {
    ((rows == n + 1 ? rows_times_columns<kBits, kGroup, n + 1>(g, row, at, results) : void()), ...);
  }
  (std::make_integer_sequence<int, kMostRows>());
}

// Results of some columns plus bias into a row of c from that column on.
template <class T>
void put_row(const GemmBlock& g, int64_t row, int64_t column, int64_t columns,
             const float* results) {
  for_columns(std::min(columns, g.c.width - column), [&](int64_t c, auto part) HWY_ATTR {
    const Vec bias = g.bias == nullptr ? zero() : load(g.bias + column + c, part);
    store(hn::Add(hn::LoadU(F32(), results + c), bias), g.c.row<T>(row) + column + c, part);
  });
}

template <int kBits, int kGroup>
void block(const GemmBlock& g) {
  int32_t* const pairs = scratch<int32_t, 9>(kMostRows * g.inner / 2);
  for (int64_t row = 0; row < g.c.rows; row += kMostRows) {
    const int64_t rows = std::min<int64_t>(kMostRows, g.c.rows - row);
    for (int64_t r = 0; r < rows; ++r) {
      spread_into_pairs(static_cast<const int8_t*>(g.a) + (row + r) * g.a_stride, g.inner,
                        pairs + r * g.inner / 2);
    }
    const int64_t columns = vectors_of(static_cast<int>(rows)) * lanes();
    for (int64_t column = 0; column < g.c.width; column += columns) {
      const int64_t panel = column / kColumns, lane = column % kColumns;
      const VectorColumns at = {static_cast<const uint8_t*>(g.b) + panel * g.panel_bytes + 4 * lane,
                                g.b_scales + panel * (g.inner / kGroup * kColumns) + lane, pairs};
      HWY_ALIGN float results[kMostRows * kColumns];
      few_rows_times_columns<kBits, kGroup>(g, row, rows, at, results);
      visit_float(g.c.dtype, [&]<class T>() {
        for (int64_t r = 0; r < rows; ++r) {
          put_row<T>(g, row + r, column, columns, results + r * columns);
        }
      });
    }
  }
}

}  // namespace

const GemmCode& gemm_groups_code(int bits, int64_t group) {
  static const GemmCode four32 = groups_code(32, false, block<4, 32>);
  static const GemmCode four64 = groups_code(64, false, block<4, 64>);
  static const GemmCode eight32 = groups_code(32, false, block<8, 32>);
  static const GemmCode eight64 = groups_code(64, false, block<8, 64>);
  if (bits == 4) return group == 32 ? four32 : four64;
  return group == 32 ? eight32 : eight64;
}

}  // namespace heddle::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heddle::cpu {

HWY_EXPORT(gemm_groups_code);
const GemmCode& gemm_groups(int bits, int64_t group) {
  return HWY_DYNAMIC_DISPATCH(gemm_groups_code)(bits, group);
}

}  // namespace heddle::cpu
#endif
