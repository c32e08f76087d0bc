// Matrix products by AVX-512's dot products, for CPUs without AMX: of pairs of bf16, and of four
// int8 (VNNI). The latter multiply unsigned by signed numbers: a is stored plus 128, and 128 times
// the sum of a column is taken off.
#if defined(__x86_64__)
#include "heddle/kernels/cpu/gemm/gemm_panel.h"

namespace heddle::cpu {
namespace {

#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512vl,avx512bf16,avx512vnni")

// The two halves of a panel's 2 KB are read one behind the other, not side by side: lines in their
// order, which is what the processor fetches ahead (AMD Zen 4, one row times weights in memory: 14
// -> 28 GB/s a thread, where plain reads give 30; 2026-11).

// What differs between the formats.
struct PairsOfBf16 {
  static constexpr int64_t kBytes = 2;  // of an element
  using Sum = __m512;
  struct Out : PanelOut {
    Out(const GemmBlock& block, int64_t first, const char*) : PanelOut(block, first) {}
    void begin(int64_t row, Sum* sum) const {
      sum[0] = sum[1] = _mm512_setzero_ps();
      if (g->accumulate) load(row, &sum[0], &sum[1]);
    }
  };
  static Sum dot(Sum sum, __m512i a, __m512i b) {
    return _mm512_dpbf16_ps(sum, reinterpret_cast<__m512bh>(a), reinterpret_cast<__m512bh>(b));
  }
};
struct FoursOfInt8 {
  static constexpr int64_t kBytes = 1;
  using Sum = __m512i;
  struct Out : Int8PanelOut {
    Sum start[2];
    Out(const GemmBlock& block, int64_t first, const char* panel)
        : Int8PanelOut(block, first, panel) {
      const int32_t* sums = columns_of(block, panel).sum128;
      const Sum zero = _mm512_setzero_si512();
      start[0] = _mm512_sub_epi32(zero, _mm512_loadu_si512(sums));
      start[1] = _mm512_sub_epi32(zero, _mm512_loadu_si512(sums + 16));
    }
    void begin(int64_t, Sum* sum) const { sum[0] = start[0], sum[1] = start[1]; }
  };
  // By its intrinsic GCC 12 stores each sum after each product.
  static Sum dot(Sum sum, __m512i a, __m512i b) {
    __asm__("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(a), "v"(b));
    return sum;
  }
};

template <class Format, int kRows>
__attribute__((noinline)) void rows_times_panel(const GemmBlock& g, int64_t row, const char* b,
                                                const typename Format::Out& out) {
  typename Format::Sum sum[kRows][2];
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) out.begin(row + r, sum[r]);
  const bool packed = g.group_bytes > 0;  // rows of 64 bytes, 32 rows to a group
  const int64_t stride = packed ? 64 : g.a_stride * Format::kBytes, step = packed ? 2048 : 64;
  const char* a = static_cast<const char*>(g.a) +
                  (packed ? row / 32 * g.group_bytes + row % 32 * 64 : row * stride);
  for (int64_t l = 0; l < g.inner; l += 64 / Format::kBytes) {
#pragma GCC unroll 2
    for (int half = 0; half < 2; ++half) {
      for (int64_t word = 0; word < 16; ++word) {  // four bytes of a row
        const __m512i columns = _mm512_loadu_si512(b + half * 1024 + word * 64);
#pragma GCC unroll 16
        for (int r = 0; r < kRows; ++r) {
          int four;
          __builtin_memcpy(&four, a + r * stride + word * 4, sizeof four);
          sum[r][half] = Format::dot(sum[r][half], _mm512_set1_epi32(four), columns);
        }
      }
    }
    a += step, b += 2048;
  }
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) out.store(row + r, sum[r][0], sum[r][1]);
}

// The same of a few rows and the columns of several panels: two sums a row would wait for each
// other, one product for the one before. Each sum is taken in the order of rows_times_panel().
template <class Format, int kRows, int... panel>
__attribute__((noinline)) void rows_times_panels(const GemmBlock& g, int64_t column,
                                                 std::integer_sequence<int, panel...>) {
  constexpr int kPanels = sizeof...(panel);
  const char* const begin = static_cast<const char*>(g.b) + column / 32 * g.panel_bytes;
  const typename Format::Out out[kPanels] = {
      typename Format::Out(g, column + 32 * panel, begin + panel * g.panel_bytes)...};
  typename Format::Sum sum[kRows][kPanels][2];
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 16
    for (int p = 0; p < kPanels; ++p) out[p].begin(r, sum[r][p]);
  }
  const bool packed = g.group_bytes > 0;
  const int64_t stride = packed ? 64 : g.a_stride * Format::kBytes, step = packed ? 2048 : 64;
  const char *a = static_cast<const char*>(g.a), *b = begin;
  for (int64_t l = 0; l < g.inner; l += 64 / Format::kBytes) {
#pragma GCC unroll 2
    for (int half = 0; half < 2; ++half) {
      for (int64_t word = 0; word < 16; ++word) {
        __m512i x[kRows];
#pragma GCC unroll 16
        for (int r = 0; r < kRows; ++r) {
          int four;
          __builtin_memcpy(&four, a + r * stride + word * 4, sizeof four);
          x[r] = _mm512_set1_epi32(four);
        }
#pragma GCC unroll 16
        for (int p = 0; p < kPanels; ++p) {
          const __m512i columns =
              _mm512_loadu_si512(b + p * g.panel_bytes + half * 1024 + word * 64);
#pragma GCC unroll 16
          for (int r = 0; r < kRows; ++r) {
            sum[r][p][half] = Format::dot(sum[r][p][half], x[r], columns);
          }
        }
      }
    }
    a += step, b += 2048;
  }
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 16
    for (int p = 0; p < kPanels; ++p) out[p].store(r, sum[r][p][0], sum[r][p][1]);
  }
}

// Rows [first, end) of c, columns [column, column + 32).
template <class Format>
void panel(const GemmBlock& g, int64_t column, int64_t first, int64_t end) {
  const char* b = static_cast<const char*>(g.b) + column / 32 * g.panel_bytes;
  const typename Format::Out out(g, column, b);
  const int64_t group = g.group_bytes > 0 ? 32 : end - first;
  for (; first < end; first += group) {
    for_rows_in_registers(
        first, first + group < end ? first + group : end,
        [&]<int kRows>(int64_t row) { rows_times_panel<Format, kRows>(g, row, b, out); });
  }
}

// Panel by panel, each in the first-level cache, with all rows. Where something is added that comes
// from memory, and all panels fit into the second level: a few rows after the other, so that it
// comes in long pieces.
template <class Format>
void block(const GemmBlock& g) {
  constexpr int64_t kFits = 160 << 10, kFew = 12;
  const int64_t rows = g.c.rows;
  int64_t done = 0;  // columns
  if (rows <= 2) {
    constexpr int kPanels = 4;
    constexpr auto panels = std::make_integer_sequence<int, kPanels>();
    for (; done + 32 * kPanels <= g.c.width; done += 32 * kPanels) {
      if (rows == 1) rows_times_panels<Format, 1>(g, done, panels);
      if (rows == 2) rows_times_panels<Format, 2>(g, done, panels);
    }
  }
  const bool by_rows = g.added.data != nullptr && g.group_bytes == 0 &&
                       g.c.width * g.inner * Format::kBytes <= kFits;
  const int64_t step = by_rows ? kFew : rows;
  for (int64_t row = 0; row < rows; row += step) {
    const int64_t end = row + step < rows ? row + step : rows;
    for (int64_t column = done; column < g.c.width; column += 32) {
      panel<Format>(g, column, row, end);
    }
  }
}

#pragma GCC pop_options

}  // namespace

const GemmCode& gemm_avx512_bf16() {
  static const GemmCode code = bf16_code(block<PairsOfBf16>);
  return code;
}
const GemmCode& gemm_int8_vnni() {
  static const GemmCode code = int8_code(1, -128, block<FoursOfInt8>);
  return code;
}

}  // namespace heddle::cpu
#endif
