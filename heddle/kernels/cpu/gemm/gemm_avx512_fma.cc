// Matrix products of bf16 by the f32 FMA of AVX-512: for CPUs without dot products of bf16 pairs,
// and for those that take longer over one of these than over the FMA that do the same (Intel's
// Xeons since 2023, where AMX is not to be had: 12 dot products 8.9 ns, the 24 FMA 4.4; 2026-11).
// Factors stay bf16 in memory: rows of a are widened a few at a time, panels in registers.
#if defined(__x86_64__)
#include "heddle/kernels/cpu/gemm/bf16_shuffle.h"
#include "heddle/kernels/cpu/gemm/gemm_panel.h"

namespace heddle::cpu {
namespace {

#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512vl,avx512bf16")

// Rows of sums that registers hold; their widened numbers lie in the first-level cache, of each
// word, a pair of inner elements, the even and the odd one apart.
constexpr int64_t kRows = kPairRows;
constexpr int64_t kChunk = 512, kWords = kChunk / 2;
struct alignas(64) WidenedRows {
  static constexpr int64_t kStride = kWords + 16;  // not a multiple of 4 KB for all
  float even[kRows * kStride], odd[kRows * kStride];
};

// Floats from one row to the next, and from one word to the next.
template <bool kPacked>
struct Steps {
  static constexpr int64_t kRow = kPacked ? 1 : WidenedRows::kStride;
  static constexpr int64_t kWord = kPacked ? kRows : 1;
};

inline void widen(const char* words, int64_t count, float* to_even, float* to_odd) {
  for (int64_t i = 0; i < count; i += 16) {
    const __m512i x = _mm512_loadu_si512(words + 4 * i);
    _mm512_store_ps(to_even + i, even(x));
    _mm512_store_ps(to_odd + i, odd(x));
  }
}

// Rows [row, row + rows) of a block.
template <bool kPacked>
void take_rows(const GemmBlock& g, int64_t row, int64_t rows, WidenedRows& to) {
  const char* const a = static_cast<const char*>(g.a);
  if constexpr (kPacked) {
    widen(a + row / kRows * g.group_bytes, g.inner / 2 * kRows, to.even, to.odd);
  } else {
    for (int64_t r = 0; r < rows; ++r) {
      const int64_t at = r * WidenedRows::kStride;
      widen(a + (row + r) * g.a_stride * 2, g.inner / 2, to.even + at, to.odd + at);
    }
  }
}

// Where sums of rows of a panel begin and end.
struct SumsOfPanel : PanelOut {
  float* waiting;  // those of the chunks before, and then of these, too
  SumsOfPanel(const GemmBlock& block, int64_t first)
      : PanelOut(block, first), waiting(block.sums + first / 32 * rows_of_sums(block) * 32) {}

  void begin(int64_t row, __m512* first, __m512* second) const {
    *first = *second = _mm512_setzero_ps();
    if (!g->begins) {
      *first = _mm512_load_ps(waiting + row * 32);
      *second = _mm512_load_ps(waiting + row * 32 + 16);
    } else if (g->accumulate) {
      load(row, first, second);
    }
  }
  // sums: [rows, 32]
  void end(int64_t row, int64_t rows, const float* sums) const {
    write_rows(*this, row, rows, [&](int64_t i) {
      return RowOfSums{_mm512_add_ps(_mm512_load_ps(sums + 32 * i), bias_low),
                       _mm512_add_ps(_mm512_load_ps(sums + 32 * i + 16), bias_high)};
    });
  }

 private:
  static int64_t rows_of_sums(const GemmBlock& g) {
    return g.begins && g.ends ? 0 : (g.c.rows + kRows - 1) / kRows * kRows;
  }
};

// The even and odd elements of the 32 columns of a word of a panel.
struct WidenedColumns {
  __m512 even[2], odd[2];
  explicit WidenedColumns(const char* word) {
#pragma GCC unroll 2
    for (int half = 0; half < 2; ++half) {
      const __m512i x = _mm512_loadu_si512(word + half * 1024);
      even[half] = cpu::even(x), odd[half] = cpu::odd(x);
    }
  }
};

template <bool kPacked, int rows>
__attribute__((noinline)) void rows_times_panel(const GemmBlock& g, int64_t row,
                                                const WidenedRows& a, const char* b,
                                                const SumsOfPanel& out) {
  using Step = Steps<kPacked>;
  __m512 sum[rows][2];
#pragma GCC unroll 16
  for (int r = 0; r < rows; ++r) out.begin(row + r, &sum[r][0], &sum[r][1]);
  const float *even = a.even, *odd = a.odd;
  for (int64_t l = 0; l < g.inner; l += 32, b += 2048) {
    for (int64_t word = 0; word < 16; ++word) {
      const WidenedColumns columns(b + word * 64);
#pragma GCC unroll 16
      for (int r = 0; r < rows; ++r) {
        const __m512 x = _mm512_set1_ps(even[r * Step::kRow]);
        sum[r][0] = _mm512_fmadd_ps(x, columns.even[0], sum[r][0]);
        sum[r][1] = _mm512_fmadd_ps(x, columns.even[1], sum[r][1]);
      }
#pragma GCC unroll 16
      for (int r = 0; r < rows; ++r) {
        const __m512 x = _mm512_set1_ps(odd[r * Step::kRow]);
        sum[r][0] = _mm512_fmadd_ps(x, columns.odd[0], sum[r][0]);
        sum[r][1] = _mm512_fmadd_ps(x, columns.odd[1], sum[r][1]);
      }
      even += Step::kWord, odd += Step::kWord;
    }
  }
  alignas(64) float done[rows * 32];
  float* const to = g.ends ? done : out.waiting + row * 32;
#pragma GCC unroll 16
  for (int r = 0; r < rows; ++r) {
    _mm512_store_ps(to + 32 * r, sum[r][0]);
    _mm512_store_ps(to + 32 * r + 16, sum[r][1]);
  }
  if (g.ends) out.end(row, rows, done);
}

// A few rows after the other, each with all panels, which come from the second-level cache: 128
// bytes while 48 products of vectors are added.
template <bool kPacked>
void block_of(const GemmBlock& g) {
  static thread_local WidenedRows a;
  const char* const panels = static_cast<const char*>(g.b);
  for (int64_t group = 0; group < g.c.rows; group += kRows) {
    const int64_t left = g.c.rows - group, end = group + (left < kRows ? left : kRows);
    take_rows<kPacked>(g, group, end - group, a);
    for_rows_in_registers(group, end, [&]<int rows>(int64_t row) {
      for (int64_t column = 0; column < g.c.width; column += 32) {
        const SumsOfPanel out(g, column);
        rows_times_panel<kPacked, rows>(g, row, a, panels + column / 32 * g.panel_bytes, out);
      }
    });
  }
}

void block(const GemmBlock& g) { g.group_bytes > 0 ? block_of<true>(g) : block_of<false>(g); }

#pragma GCC pop_options

}  // namespace

const GemmCode& gemm_avx512_fma() {
  static const GemmCode code = [] {
    GemmCode c = bf16_code(block);
    c.inner_chunk = kChunk, c.block_rows = 252, c.keeps_sums = true;
    c.group_rows = kPairRows, c.behind_group = kBehindPairs, c.pack_transposed = pack_pairs;
    return c;
  }();
  return code;
}

}  // namespace heddle::cpu
#endif
