// Products with weights of four or eight bits in groups by vectors of the best instruction set:
// pairs of 16-bit integers, 32 bits for a group, f32 from there.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "heddle/kernels/cpu/gemm/gemm_groups.cc"
#include "heddle/kernels/cpu/targets.h"
#include "hwy/foreach_target.h"
//
#include "heddle/kernels/cpu/gemm/gemm_block.h"
#include "heddle/kernels/cpu/gemm/groups.h"
#include "heddle/kernels/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heddle::cpu::HWY_NAMESPACE {
namespace {

using VecI32 = hn::Vec<I32>;
constexpr int64_t kColumns = 32;  // of a panel
constexpr int kMostRows = 4;

// sum + the two 16-bit halves of a lane of x times those of y.
HWY_INLINE VecI32 add_pairs(VecI32 x, VecI32 y, VecI32 sum) {
#if HWY_ARCH_X86
  using I16 = hn::Repartition<int16_t, I32>;
  VecI32 none = hn::Zero(I32());
  return hn::ReorderWidenMulAccumulate(I32(), hn::BitCast(I16(), x), hn::BitCast(I16(), y), sum,
                                       none);
#else  // which pairs come together there is not said
  const auto low = [](VecI32 v) HWY_ATTR { return hn::ShiftRight<16>(hn::ShiftLeft<16>(v)); };
  const auto high = [](VecI32 v) HWY_ATTR { return hn::ShiftRight<16>(v); };
  return hn::Add(sum, hn::Add(hn::Mul(low(x), low(y)), hn::Mul(high(x), high(y))));
#endif
}

// Four activations as two pairs: the first and third, the second and fourth.
void spread_into_pairs(const int8_t* a, int64_t n, int32_t* pairs) {
  const auto pair = [](int low, int high) {
    return static_cast<int32_t>(static_cast<uint32_t>(high) << 16 |
                                (static_cast<uint32_t>(low) & 0xffff));
  };
  for (int64_t l = 0; l < n; l += 4) {
    *pairs++ = pair(a[l], a[l + 2]);
    *pairs++ = pair(a[l + 1], a[l + 3]);
  }
}

// Four weights without a sign in each lane of x times those of a quad of each row.
template <int kRows>
HWY_INLINE void add_quad(VecI32 x, const int32_t* pairs, int64_t row_pairs, VecI32* dots) {
  const VecI32 bytes = hn::Set(I32(), 0x00ff00ff);
  const VecI32 even = hn::And(x, bytes);
  const VecI32 odd = hn::And(hn::BitCast(I32(), hn::ShiftRight<8>(hn::BitCast(U32(), x))), bytes);
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) {
    const int32_t* const two = pairs + r * row_pairs;
    dots[r] = add_pairs(even, hn::Set(I32(), two[0]), dots[r]);
    dots[r] = add_pairs(odd, hn::Set(I32(), two[1]), dots[r]);
  }
}

// Where the columns of a vector begin: their values, scales and pairs of activations.
struct VectorColumns {
  const uint8_t* b;
  const bf16* scales;
  const int32_t* pairs;
};

// Rows [row, row + kRows) times a vector of columns of a panel; the results: [kRows][lanes].
template <int kBits, int kGroup, int kRows>
void rows_times_columns(const GemmBlock& g, int64_t row, const VectorColumns& at, float* results) {
  const int64_t row_pairs = g.inner / 2;
  const int32_t* pairs = at.pairs;
  Vec sum[kRows];
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) sum[r] = zero();
  const uint8_t* b = at.b;
  for (int64_t i = 0; i < g.inner / kGroup; ++i) {
    VecI32 dots[kRows];
    const RoundedGroup* group[kRows];
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) {
      const auto* a = static_cast<const char*>(g.a) + (row + r) * g.a_stride;
      group[r] = reinterpret_cast<const RoundedGroup*>(a + g.inner) + i;
      dots[r] = hn::Set(I32(), group[r]->offset);
    }
    for (int step = 0; step < kGroup * kBits / 32; ++step, b += 4 * kColumns, pairs += 2) {
      const VecI32 x = hn::LoadU(I32(), reinterpret_cast<const int32_t*>(b));
      if constexpr (kBits == 8) {
        const VecI32 flip = hn::Set(I32(), static_cast<int32_t>(0x80808080u));
        add_quad<kRows>(hn::Xor(x, flip), pairs, row_pairs, dots);
      } else {
        const VecI32 half = hn::Set(I32(), 0x0f0f0f0f);
        add_quad<kRows>(hn::And(x, half), pairs, row_pairs, dots);
        const VecI32 upper = hn::BitCast(I32(), hn::ShiftRight<4>(hn::BitCast(U32(), x)));
        add_quad<kRows>(hn::And(upper, half), pairs + kGroup / 4, row_pairs, dots);
      }
    }
    if constexpr (kBits == 4) pairs += kGroup / 4;
    const Vec scale = load(at.scales + i * kColumns, Full{});
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) {
      const Vec unit = hn::Mul(splat(group[r]->scale), scale);
      sum[r] = hn::MulAdd(hn::ConvertTo(F32(), dots[r]), unit, sum[r]);
    }
  }
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) hn::StoreU(sum[r], F32(), results + r * lanes());
}

// The same for as many rows as are left, at most kMostRows.
template <int kBits, int kGroup>
void few_rows_times_columns(const GemmBlock& g, int64_t row, int64_t rows, const VectorColumns& at,
                            float* results) {
  switch (rows) {
    case 1: return rows_times_columns<kBits, kGroup, 1>(g, row, at, results);
    case 2: return rows_times_columns<kBits, kGroup, 2>(g, row, at, results);
    case 3: return rows_times_columns<kBits, kGroup, 3>(g, row, at, results);
    default: return rows_times_columns<kBits, kGroup, 4>(g, row, at, results);
  }
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
    for (int64_t column = 0; column < g.c.width; column += lanes()) {
      const int64_t panel = column / kColumns, lane = column % kColumns;
      const VectorColumns at = {static_cast<const uint8_t*>(g.b) + panel * g.panel_bytes + 4 * lane,
                                g.b_scales + panel * (g.inner / kGroup * kColumns) + lane, pairs};
      HWY_ALIGN float results[kMostRows * 16];
      few_rows_times_columns<kBits, kGroup>(g, row, rows, at, results);
      const int64_t count = std::min(lanes(), g.c.width - column);
      for (int64_t r = 0; r < rows; ++r) {
        for (int64_t c = 0; c < count; ++c) {
          float value = results[r * lanes() + c];
          if (g.bias != nullptr) value += g.bias[column + c];
          visit_float(g.c.dtype, [&]<class T>() { g.c.row<T>(row + r)[column + c] = T(value); });
        }
      }
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
