// Matrix products by AVX-512's dot products, for CPUs without AMX: of pairs of bf16, and of four
// int8 (VNNI). The latter multiply unsigned by signed numbers: a is stored plus 128, and 128 times
// the sum of a column is taken off.
#if defined(__x86_64__)
#include "heddle/kernels/cpu/gemm/bf16_shuffle.h"
#include "heddle/kernels/cpu/gemm/gemm_panel.h"

namespace heddle::cpu {
namespace {

#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512vl,avx512bf16,avx512vnni")

// The two halves of a panel's 2 KB are read one behind the other, not side by side: lines in their
// order, which is what AMD's cores fetch ahead (Zen 4, one row times weights in memory: 14 -> 28
// GB/s a thread, where plain reads give 30; 2026-11). But for more rows in int8 on Intel's, whose
// two loads a cycle are as many as products: side by side they read each number of a once for both
// (model 207, 1,024 rows 565 -> 660 GFLOP/s).
constexpr int kFewSideBySide = 4;

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

// Rows of sums that registers hold, and of a packed group of a.
constexpr int64_t kGroupRows = kPairRows, kPairBytes = 4 * kGroupRows;

// Lines of the next panel to ask for while 2 KB of this one are multiplied: a panel that comes from
// memory would keep its first rows waiting. All products of a step of translate-base, two threads
// of an EPYC (Zen 4), 2026-11, GFLOP/s: 64 rows 672 -> 700, 8 rows 457 -> 557 in int8; but 3 rows
// 274 -> 253, and in bf16 8 rows 278 -> 245, which wait for memory alone.
constexpr int64_t kFewForFetches = 4;
struct Ahead {
  const char* panel = nullptr;
  int64_t first = 0, end = 0;

  void fetch(int64_t offset) const {
    for (int64_t line = first; line < end; ++line) {
      _mm_prefetch(panel + offset + 64 * line, _MM_HINT_T1);
    }
  }
};

template <class Format, bool kPacked, bool kSideBySide, int kRows>
__attribute__((noinline)) void rows_times_panel(const GemmBlock& g, int64_t row, const char* b,
                                                const typename Format::Out& out,
                                                const Ahead& ahead) {
  typename Format::Sum sum[kRows][2];
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) out.begin(row + r, sum[r]);
  const int64_t stride = kPacked ? 4 : g.a_stride * Format::kBytes;
  constexpr int64_t kNext = kPacked ? kPairBytes : 4, kStep = 16 * kNext;
  const char* a =
      static_cast<const char*>(g.a) + (kPacked ? row / kGroupRows * g.group_bytes : row * stride);
  [[maybe_unused]] const char* const begin = b;
  for (int64_t l = 0; l < g.inner; l += 64 / Format::kBytes) {
    if constexpr (Format::kBytes == 1) ahead.fetch(b - begin);
    constexpr int kTogether = kSideBySide && kRows > kFewSideBySide ? 2 : 1;
#pragma GCC unroll 2
    for (int half = 0; half < 2; half += kTogether) {
      for (int64_t word = 0; word < 16; ++word) {  // four bytes of a row
        __m512i columns[kTogether];
#pragma GCC unroll 2
        for (int i = 0; i < kTogether; ++i) {
          columns[i] = _mm512_loadu_si512(b + (half + i) * 1024 + word * 64);
        }
#pragma GCC unroll 16
        for (int r = 0; r < kRows; ++r) {
          int four;
          __builtin_memcpy(&four, a + r * stride + word * kNext, sizeof four);
#pragma GCC unroll 2
          for (int i = 0; i < kTogether; ++i) {
            sum[r][half + i] = Format::dot(sum[r][half + i], _mm512_set1_epi32(four), columns[i]);
          }
        }
      }
    }
    a += kStep, b += 2048;
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
  const int64_t stride = g.a_stride * Format::kBytes;
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
    a += 64, b += 2048;
  }
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 16
    for (int p = 0; p < kPanels; ++p) out[p].store(r, sum[r][p][0], sum[r][p][1]);
  }
}

// Rows [first, end) of c, columns [column, column + 32).
template <class Format, bool kPacked, bool kSideBySide>
void panel(const GemmBlock& g, int64_t column, int64_t first, int64_t end) {
  const char* b = static_cast<const char*>(g.b) + column / 32 * g.panel_bytes;
  const typename Format::Out out(g, column, b);
  const bool fetches = Format::kBytes == 1 && first == 0 && end > kFewForFetches;
  const char* const next = fetches ? b + g.panel_bytes : nullptr;
  const auto rows = [&]<int kRows>(int64_t row) {
    Ahead ahead;  // each of the rows asks for a like part
    if (next != nullptr) ahead = {next, 32 * row / end, 32 * (row + kRows) / end};
    rows_times_panel<Format, kPacked, kSideBySide, kRows>(g, row, b, out, ahead);
  };
  const int64_t group = kPacked ? kGroupRows : end - first;
  for (; first < end; first += group) {
    for_rows_in_registers(first, first + group < end ? first + group : end, rows);
  }
}

// Panel by panel, each in the first-level cache, with all rows. Where something is added that comes
// from memory, and all panels fit into the second level: a few rows after the other, so that it
// comes in long pieces.
template <class Format, bool kPacked = false, bool kSideBySide = false>
void block(const GemmBlock& g) {
  constexpr int64_t kFits = 160 << 10, kFew = 12;
  const int64_t rows = g.c.rows;
  int64_t done = 0;  // columns
  if (rows <= 2 && !kPacked) {
    constexpr int kPanels = 4;
    constexpr auto panels = std::make_integer_sequence<int, kPanels>();
    for (; done + 32 * kPanels <= g.c.width; done += 32 * kPanels) {
      if (rows == 1) rows_times_panels<Format, 1>(g, done, panels);
      if (rows == 2) rows_times_panels<Format, 2>(g, done, panels);
    }
  }
  const bool by_rows =
      g.added.data != nullptr && !kPacked && g.c.width * g.inner * Format::kBytes <= kFits;
  const int64_t step = by_rows ? kFew : rows;
  for (int64_t row = 0; row < rows; row += step) {
    const int64_t end = row + step < rows ? row + step : rows;
    for (int64_t column = done; column < g.c.width; column += 32) {
      panel<Format, kPacked, kSideBySide>(g, column, row, end);
    }
  }
}

void bf16_block(const GemmBlock& g) {
  g.group_bytes > 0 ? block<PairsOfBf16, true>(g) : block<PairsOfBf16>(g);
}

#pragma GCC pop_options

}  // namespace

#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512vl")

// Pairs of inner elements of 12 rows, group by group: two rows of a at a time, along their columns,
// so that it is read in its order. A store of 64 bytes writes 16 beyond the 12 words, which the
// next pair's overwrites, or, after the last pair, lie behind the group.
void pack_pairs(const Rows& a, int64_t group_bytes, void* to) {
  constexpr int64_t kAhead = 16;  // rows
  alignas(64) static constexpr uint16_t kOrder[32] = {0,  32, 1,  33, 2,  34, 3,  35, 4,  36, 5,
                                                      37, 6,  38, 7,  39, 8,  40, 9,  41, 10, 42,
                                                      11, 43, 0,  0,  0,  0,  0,  0,  0,  0};
  const __m512i first = _mm512_load_si512(kOrder);
  const __m512i second = _mm512_add_epi16(first, _mm512_set1_epi16(kGroupRows));
  const __m512i zero = _mm512_setzero_si512();
  const int64_t filled = (a.rows + 31) / 32 * 32, width = a.width;
  char* pair = static_cast<char*>(to);
  for (int64_t l = 0; l < filled; l += 2, pair += kPairBytes) {
    const bool has_even = l < a.rows, has_odd = l + 1 < a.rows;
    const uint16_t* const even = has_even ? a.row<uint16_t>(l) : nullptr;
    const uint16_t* const odd = has_odd ? a.row<uint16_t>(l + 1) : nullptr;
    char* group = pair;
    const auto store = [&](__m512i x, __m512i y, bool has_second) {
      _mm512_storeu_si512(group, _mm512_permutex2var_epi16(x, first, y));
      group += group_bytes;
      if (!has_second) return;
      _mm512_storeu_si512(group, _mm512_permutex2var_epi16(x, second, y));
      group += group_bytes;
    };
    int64_t c = 0;
    if (has_odd) {
      for (; c + 32 <= width; c += 2 * kGroupRows) {
        _mm_prefetch(even + c + kAhead * a.stride, _MM_HINT_T0);
        _mm_prefetch(odd + c + kAhead * a.stride, _MM_HINT_T0);
        store(_mm512_loadu_si512(even + c), _mm512_loadu_si512(odd + c), true);
      }
    }
    for (; c < width; c += 2 * kGroupRows) {
      const __mmask32 columns = first_16bit(width - c);
      store(has_even ? _mm512_maskz_loadu_epi16(columns, even + c) : zero,
            has_odd ? _mm512_maskz_loadu_epi16(columns, odd + c) : zero, width - c > kGroupRows);
    }
  }
}

#pragma GCC pop_options

const GemmCode& gemm_avx512_bf16() {
  static const GemmCode code = [] {
    GemmCode c = bf16_code(bf16_block);
    c.group_rows = kGroupRows, c.behind_group = kBehindPairs, c.pack_transposed = pack_pairs;
    c.crowded = 4096;
    return c;
  }();
  return code;
}
const GemmCode& gemm_int8_vnni() {
  static const GemmCode code =
      int8_code(1, -128, is_of_amd() ? block<FoursOfInt8> : block<FoursOfInt8, false, true>);
  return code;
}

}  // namespace heddle::cpu
#endif
