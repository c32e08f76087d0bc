// Matrix products in bf16 by AVX-512's dot products of pairs, for CPUs without AMX.
#if defined(__x86_64__)
#include "heddle/kernels/cpu/gemm/gemm_panel.h"

namespace heddle::cpu {
namespace {

#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512vl,avx512bf16")

template <int kRows>
__attribute__((noinline)) void rows_times_panel(const GemmBlock& g, int64_t row, const char* b,
                                                const PanelOut& out) {
  __m512 sum[kRows][2];
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
    sum[r][0] = sum[r][1] = _mm512_setzero_ps();
    if (g.accumulate) out.load(row + r, &sum[r][0], &sum[r][1]);
  }
  const bool packed = g.group_bytes > 0;  // rows of 32 elements, 32 rows to a group
  const char* a = static_cast<const char*>(g.a) +
                  (packed ? row / 32 * g.group_bytes + row % 32 * 64 : row * g.a_stride * 2);
  const int64_t stride = packed ? 64 : g.a_stride * 2, step = packed ? 2048 : 64;
  for (int64_t l = 0; l < g.inner; l += 32) {
    for (int64_t pair = 0; pair < 16; ++pair) {
      const auto b0 = reinterpret_cast<__m512bh>(_mm512_loadu_si512(b + pair * 64));
      const auto b1 = reinterpret_cast<__m512bh>(_mm512_loadu_si512(b + 1024 + pair * 64));
#pragma GCC unroll 16
      for (int r = 0; r < kRows; ++r) {
        int two;
        __builtin_memcpy(&two, a + r * stride + pair * 4, sizeof two);
        const auto x = reinterpret_cast<__m512bh>(_mm512_set1_epi32(two));
        sum[r][0] = _mm512_dpbf16_ps(sum[r][0], x, b0);
        sum[r][1] = _mm512_dpbf16_ps(sum[r][1], x, b1);
      }
    }
    a += step, b += 2048;
  }
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) out.store(row + r, sum[r][0], sum[r][1]);
}

void block(const GemmBlock& g) {
  for (int64_t column = 0; column < g.c.width; column += 32) {
    const char* b = static_cast<const char*>(g.b) + column / 32 * g.panel_bytes;
    const PanelOut out(g, column);
    const int64_t rows = g.c.rows, group = g.group_bytes > 0 ? 32 : rows;
    for (int64_t first = 0; first < rows; first += group) {
      const int64_t end = first + group < rows ? first + group : rows;
      for_rows_in_registers(
          first, end, [&]<int kRows>(int64_t row) { rows_times_panel<kRows>(g, row, b, out); });
    }
  }
}

#pragma GCC pop_options

}  // namespace

const GemmCode& gemm_avx512_bf16() {
  static const GemmCode code = bf16_code(512, block);
  return code;
}

}  // namespace heddle::cpu
#endif
