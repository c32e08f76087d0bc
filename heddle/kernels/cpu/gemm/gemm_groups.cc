// Products with weights of four or eight bits in groups by vectors of the best instruction set:
// bytes times bytes in pairs of 16 bits, 32 bits for a group, f32 from there.
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

using I8 = hn::Repartition<int8_t, I32>;
using U8 = hn::Repartition<uint8_t, I32>;
using VecI16 = hn::Vec<I16>;

// Bytes of x, without a sign, times those of y, with one; two neighbours added, which must not
// exceed 16 bits.
HWY_INLINE VecI16 pair_products(hn::Vec<U8> x, hn::Vec<I8> y) {
#if HWY_TARGET == HWY_AVX2
  return VecI16{_mm256_maddubs_epi16(x.raw, y.raw)};
#elif HWY_TARGET <= HWY_AVX3
  return VecI16{_mm512_maddubs_epi16(x.raw, y.raw)};
#else
  const I16 d;
  const auto even = hn::ShiftRight<8>(hn::ShiftLeft<8>(hn::BitCast(d, y)));
  const auto odd = hn::ShiftRight<8>(hn::BitCast(d, y));
  const auto pair = hn::BitCast(hn::Repartition<uint16_t, I32>(), x);
  const auto low = hn::BitCast(d, hn::ShiftRight<8>(hn::ShiftLeft<8>(pair)));
  return hn::Add(hn::Mul(low, even), hn::Mul(hn::BitCast(d, hn::ShiftRight<8>(pair)), odd));
#endif
}

// Bytes of y, none -128, negated where those of x are negative; where x is zero, anything.
HWY_INLINE hn::Vec<I8> with_sign_of(hn::Vec<I8> x, hn::Vec<I8> y) {
#if HWY_TARGET == HWY_AVX2
  return hn::Vec<I8>{_mm256_sign_epi8(y.raw, x.raw)};
#else
  const auto negative = hn::BroadcastSignBit(x);
  return hn::Sub(hn::Xor(y, negative), negative);
#endif
}

// Four activations of a row for each column.
HWY_INLINE hn::Vec<I8> broadcast_quad(const int8_t* from) {
  int32_t quad;
  std::memcpy(&quad, from, sizeof quad);
  return hn::BitCast(I8(), hn::Set(I32(), quad));
}

HWY_INLINE hn::Vec<U8> load_bytes(const uint8_t* from) { return hn::LoadU(U8(), from); }

// Where the columns of some vectors begin, their values and scales.
struct VectorColumns {
  const uint8_t* b;
  const bf16* scales;
};

// A row or two wait for weights, which are fetched so many bytes ahead.
constexpr int kFewRows = 2;
constexpr int64_t kAhead = 4096;

template <int kRows>
HWY_INLINE void fetch_ahead(const uint8_t* b) {
  if constexpr (kRows <= kFewRows) {
    __builtin_prefetch(b + kAhead);
    __builtin_prefetch(b + kAhead + 64);
  }
}

// dots + 32 activations of each row times weights of 8 bits, from b on.
template <int kRows, int kVectors>
HWY_INLINE void add_bytes(const int8_t* const (&a)[kRows], int64_t inner, const uint8_t* b,
                          VecI32 (&dots)[kRows][kVectors]) {
  const auto ones = hn::Set(I16(), 1);
#pragma GCC unroll 1  // unrolled, GCC 12 adds up products that it has to put down meanwhile
  for (int step = 0; step < 8; ++step, b += 4 * kColumns) {
    fetch_ahead<kRows>(b);
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      // The sign goes over to the activation: 2 * 128 * 127 are 16 bits.
      const auto w = hn::BitCast(I8(), load_bytes(b + 4 * v * lanes()));
      const auto size = hn::BitCast(U8(), hn::Abs(w));
#pragma GCC unroll 4
      for (int r = 0; r < kRows; ++r) {
        const auto y = with_sign_of(w, broadcast_quad(a[r] + inner + 4 * step));
        dots[r][v] = add_pairs(pair_products(size, y), ones, dots[r][v]);
      }
    }
  }
}

// The same of 4 bits: those of 16 activations, and in the upper halves those `second` behind.
template <int kRows, int kVectors>
HWY_INLINE void add_nibbles(const int8_t* const (&a)[kRows], int64_t inner, int64_t second,
                            const uint8_t* b, VecI32 (&dots)[kRows][kVectors]) {
  const auto half = hn::Set(U8(), 0x0f);
  VecI16 sum[kRows][kVectors];  // of eight pairs: 8 * 2 * 15 * 127 are 16 bits
#pragma GCC unroll 4
  for (int step = 0; step < 4; ++step, b += 4 * kColumns) {
    fetch_ahead<kRows>(b);
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      const auto both = load_bytes(b + 4 * v * lanes());
      const auto low = hn::And(both, half);
      const auto upper = hn::ShiftRight<4>(hn::BitCast(hn::Repartition<uint16_t, U8>(), both));
      const auto high = hn::And(hn::BitCast(U8(), upper), half);
#pragma GCC unroll 4
      for (int r = 0; r < kRows; ++r) {
        const int8_t* const at = a[r] + inner + 4 * step;
        const VecI16 first = pair_products(low, broadcast_quad(at));
        sum[r][v] = step == 0 ? first : hn::Add(sum[r][v], first);
        sum[r][v] = hn::Add(sum[r][v], pair_products(high, broadcast_quad(at + second)));
      }
    }
  }
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      dots[r][v] = add_pairs(sum[r][v], hn::Set(I16(), 1), dots[r][v]);
    }
  }
}

// Rows [row, row + kRows) times some vectors of columns of a panel; the results: [kRows][columns].
template <int kBits, int kGroup, int kRows>
void rows_times_columns(const GemmBlock& g, int64_t row, const VectorColumns& at, float* results) {
  constexpr int kVectors = vectors_of(kRows);
  Vec sum[kRows][kVectors];
#pragma GCC unroll 4
  for (auto& sums : sum) {
#pragma GCC unroll 4
    for (Vec& one : sums) one = zero();
  }
  const int8_t* a[kRows];
  const RoundedGroup* group[kRows];
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) {
    a[r] = static_cast<const int8_t*>(g.a) + (row + r) * g.a_stride;
    group[r] = reinterpret_cast<const RoundedGroup*>(a[r] + g.inner);
  }
  const uint8_t* b = at.b;
  for (int64_t i = 0; i < g.inner / kGroup; ++i) {
    VecI32 dots[kRows][kVectors];
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) {
      // Eight bits have their sign here.
      const VecI32 start = hn::Set(I32(), kBits == 8 ? 0 : group[r][i].offset);
#pragma GCC unroll 4
      for (VecI32& dot : dots[r]) dot = start;
    }
#pragma GCC unroll 2
    for (int part = 0; part < kGroup / 32; ++part, b += kBits * kColumns * 4) {
      if constexpr (kBits == 8) {
        add_bytes(a, i * kGroup + part * 32, b, dots);
      } else {
        add_nibbles(a, i * kGroup + part * 16, kGroup / 2, b, dots);
      }
    }
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      const Vec scale = load(at.scales + i * kColumns + v * lanes(), Full{});
#pragma GCC unroll 4
      for (int r = 0; r < kRows; ++r) {
        const Vec unit = hn::Mul(splat(group[r][i].scale), scale);
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
  for (int64_t row = 0; row < g.c.rows; row += kMostRows) {
    const int64_t rows = std::min<int64_t>(kMostRows, g.c.rows - row);
    const int64_t columns = vectors_of(static_cast<int>(rows)) * lanes();
    for (int64_t column = 0; column < g.c.width; column += columns) {
      const int64_t panel = column / kColumns, lane = column % kColumns;
      const VectorColumns at = {static_cast<const uint8_t*>(g.b) + panel * g.panel_bytes + 4 * lane,
                                g.b_scales + panel * (g.inner / kGroup * kColumns) + lane};
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
  static const GroupsCodes codes =
      groups_codes(false, {block<4, 32>, block<4, 64>, block<8, 32>, block<8, 64>});
  return code_of(codes, bits, group);
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
