// Matrix products in int8 by AVX-512 VNNI's dot products of four, for CPUs without AMX. They
// multiply unsigned by signed numbers: a is stored plus 128, and 128 times the sum of a column is
// taken off.
#if defined(__x86_64__)
#include "heddle/kernels/cpu/gemm/gemm_panel.h"

namespace heddle::cpu {
namespace {

#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512vl,avx512bf16,avx512vnni")

template <int kRows>
__attribute__((noinline)) void rows_times_panel(const GemmBlock& g, int64_t row, const char* b,
                                                const Int8PanelOut& out) {
  const Int8Columns& columns = columns_of(g, b);
  const __m512i zero = _mm512_setzero_si512();
  const __m512i low = _mm512_sub_epi32(zero, _mm512_loadu_si512(columns.sum128));
  const __m512i high = _mm512_sub_epi32(zero, _mm512_loadu_si512(columns.sum128 + 16));
  __m512i sum[kRows][2];
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) sum[r][0] = low, sum[r][1] = high;
  const char* a = static_cast<const char*>(g.a) + row * g.a_stride;
  for (int64_t l = 0; l < g.inner; l += 64) {
    for (int64_t quad = 0; quad < 16; ++quad) {
      const __m512i b0 = _mm512_loadu_si512(b + quad * 64);
      const __m512i b1 = _mm512_loadu_si512(b + 1024 + quad * 64);
#pragma GCC unroll 16
      for (int r = 0; r < kRows; ++r) {
        int four;
        __builtin_memcpy(&four, a + r * g.a_stride + quad * 4, sizeof four);
        const __m512i x = _mm512_set1_epi32(four);
        sum[r][0] = _mm512_dpbusd_epi32(sum[r][0], x, b0);
        sum[r][1] = _mm512_dpbusd_epi32(sum[r][1], x, b1);
      }
    }
    a += 64, b += 2048;
  }
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) out.store(row + r, sum[r][0], sum[r][1]);
}

void block(const GemmBlock& g) {
  for (int64_t column = 0; column < g.c.width; column += kInt8Columns) {
    const char* b = static_cast<const char*>(g.b) + column / kInt8Columns * g.panel_bytes;
    const Int8PanelOut out(g, column, b);
    for_rows_in_registers(0, g.c.rows,
                          [&]<int kRows>(int64_t row) { rows_times_panel<kRows>(g, row, b, out); });
  }
}

#pragma GCC pop_options

}  // namespace

const GemmCode& gemm_int8_vnni() {
  static const GemmCode code = int8_code(1, -128, block);
  return code;
}

}  // namespace heddle::cpu
#endif
