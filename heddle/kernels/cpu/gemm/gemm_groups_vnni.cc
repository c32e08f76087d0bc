// Products with weights of four or eight bits in groups by AVX-512's dot products of four int8
// (VNNI): weights without a sign by activations with one, 32 bits for a group, f32 from there.
#if defined(__x86_64__)
#include "heddle/kernels/cpu/gemm/gemm_panel.h"
#include "heddle/kernels/cpu/gemm/groups.h"

namespace heddle::cpu {
namespace {

#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512vl,avx512bf16,avx512vnni")

// sums + four weights times the four activations at `a`, in each lane; these are read once for
// both: two loads a cycle are all that there are, and as many products. By its intrinsic GCC 12
// stores each sum after each product.
inline void add_dots(__m512i (&sums)[2], __m512i w0, __m512i w1, const char* a) {
  int four;
  __builtin_memcpy(&four, a, sizeof four);
  const __m512i x = _mm512_set1_epi32(four);
  __asm__("vpdpbusd %2, %1, %0" : "+v"(sums[0]) : "v"(w0), "v"(x));
  __asm__("vpdpbusd %2, %1, %0" : "+v"(sums[1]) : "v"(w1), "v"(x));
}

// Asks for weights before they are needed: memory in pages of 4 KB, as files are mapped, is not
// read ahead beyond the page. Distance and cache were chosen by one row times 3072 x 768, groups of
// 32, 40 such matrices, on one thread of an EPYC (Zen 4) that others loaded, CPU time, 2026-11.
// Shares of plain reads with 2 KB into the first-level cache, and as they are chosen, 4 bits far, 8
// bits not: 87 and 96 %, 64 and 93 %. Intel's cores (model 207, two threads, GPT-2) take 8 bits 5
// to 12 % faster from 4 KB ahead in the first level, 3 % from there in the second.
template <bool kFar>
void prefetch(const char* b) {
  constexpr int64_t kAhead = kFar ? 4096 : 2048;
  constexpr auto kLevel = kFar ? _MM_HINT_T0 : _MM_HINT_T1;
  _mm_prefetch(b + kAhead, kLevel);
  _mm_prefetch(b + kAhead + 64, kLevel);
}

// Some rows times a panel of 32 columns.
template <int kBits, int kGroup, bool kFar, int kRows>
__attribute__((noinline)) void rows_times_panel(const GemmBlock& g, int64_t row, const char* b,
                                                const bf16* scales, const PanelOut& out) {
  const char* a = static_cast<const char*>(g.a) + row * g.a_stride;
  const auto* group = reinterpret_cast<const RoundedGroup*>(a + g.inner);
  const int64_t stride = g.a_stride;
  const auto in_row = [&](int r) {
    return reinterpret_cast<const RoundedGroup*>(reinterpret_cast<const char*>(group) + r * stride);
  };
  __m512 sum[kRows][2];
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) sum[r][0] = sum[r][1] = _mm512_setzero_ps();
  for (int64_t l = 0; l < g.inner; l += kGroup, a += kGroup, ++group, scales += 32) {
    __m512i dots[kRows][2];
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) dots[r][0] = dots[r][1] = _mm512_set1_epi32(in_row(r)->offset);
    constexpr int kSteps = kGroup * kBits / 32;
#pragma GCC unroll 16
    for (int step = 0; step < kSteps; ++step, b += 128) {
      prefetch<kFar>(b);
      const __m512i x0 = _mm512_loadu_si512(b), x1 = _mm512_loadu_si512(b + 64);
      if constexpr (kBits == 8) {
        const __m512i flip = _mm512_set1_epi8(-128);
        const __m512i w0 = _mm512_xor_si512(x0, flip), w1 = _mm512_xor_si512(x1, flip);
#pragma GCC unroll 16
        for (int r = 0; r < kRows; ++r) {
          add_dots(dots[r], w0, w1, a + r * stride + 4 * step);
        }
      } else {
        const __m512i mask = _mm512_set1_epi8(15);
        const __m512i low0 = _mm512_and_si512(x0, mask), low1 = _mm512_and_si512(x1, mask);
#pragma GCC unroll 16
        for (int r = 0; r < kRows; ++r) {
          add_dots(dots[r], low0, low1, a + r * stride + 4 * step);
        }
        const __m512i high0 = _mm512_and_si512(_mm512_srli_epi16(x0, 4), mask);
        const __m512i high1 = _mm512_and_si512(_mm512_srli_epi16(x1, 4), mask);
#pragma GCC unroll 16
        for (int r = 0; r < kRows; ++r) {
          add_dots(dots[r], high0, high1, a + r * stride + kGroup / 2 + 4 * step);
        }
      }
    }
    const __m512i both = _mm512_loadu_si512(scales);
    const __m512 scale0 = widened<0>(both), scale1 = widened<1>(both);
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
      const __m512 unit = _mm512_set1_ps(in_row(r)->scale);
      sum[r][0] =
          _mm512_fmadd_ps(_mm512_cvtepi32_ps(dots[r][0]), _mm512_mul_ps(unit, scale0), sum[r][0]);
      sum[r][1] =
          _mm512_fmadd_ps(_mm512_cvtepi32_ps(dots[r][1]), _mm512_mul_ps(unit, scale1), sum[r][1]);
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) out.store(row + r, sum[r][0], sum[r][1]);
}

template <int kBits, int kGroup, bool kFar = true>
void block(const GemmBlock& g) {
  constexpr int kMostRows = 6;  // sums of groups and of rows take 24 registers of 32
  for (int64_t column = 0; column < g.c.width; column += 32) {
    const char* const b = static_cast<const char*>(g.b) + column / 32 * g.panel_bytes;
    const bf16* const scales = g.b_scales + column / 32 * (g.inner / kGroup * 32);
    const PanelOut out(g, column);
    for_rows_in_registers<kMostRows>(0, g.c.rows, [&]<int kRows>(int64_t row) {
      rows_times_panel<kBits, kGroup, kFar, kRows>(g, row, b, scales, out);
    });
  }
}

#pragma GCC pop_options

}  // namespace

const GemmCode& gemm_groups_vnni(int bits, int64_t group) {
  static const bool is_amd = is_of_amd();
  static const GroupsCodes codes =
      groups_codes(true, {block<4, 32>, block<4, 64>, is_amd ? block<8, 32, false> : block<8, 32>,
                          is_amd ? block<8, 64, false> : block<8, 64>});
  return code_of(codes, bits, group);
}

}  // namespace heddle::cpu
#endif
