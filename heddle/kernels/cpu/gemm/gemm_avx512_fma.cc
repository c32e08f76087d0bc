// Matrix products of bf16 by the f32 FMA of AVX-512: for CPUs without dot products of bf16 pairs,
// and for those that take longer over one of these than over the FMA that do the same (Intel's
// Xeons since 2023, where AMX is not to be had: 12 dot products 8.9 ns, the 24 FMA 4.4; 2026-11).
// Factors stay bf16 in memory: rows of a are widened a few at a time, panels in registers.
#if defined(__x86_64__)
#include "heddle/kernels/cpu/gemm/bf16_shuffle.h"
#include "heddle/kernels/cpu/gemm/gemm_panel.h"
#include "heddle/kernels/cpu/scratch.h"

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

// The 32 columns of a word of a panel: of its even element, then of its odd one.
struct Columns {
  __m512 even[2], odd[2];

  static Columns widened(const char* word) {
    Columns x;
#pragma GCC unroll 2
    for (int half = 0; half < 2; ++half) {
      const __m512i both = _mm512_loadu_si512(word + half * 1024);
      x.even[half] = cpu::even(both), x.odd[half] = cpu::odd(both);
    }
    return x;
  }
  static Columns loaded(const float* word) {
    return {{_mm512_load_ps(word), _mm512_load_ps(word + 16)},
            {_mm512_load_ps(word + 32), _mm512_load_ps(word + 48)}};
  }
  void store(float* word) const {
    _mm512_store_ps(word, even[0]), _mm512_store_ps(word + 16, even[1]);
    _mm512_store_ps(word + 32, odd[0]), _mm512_store_ps(word + 48, odd[1]);
  }
};

// Calls f(columns) for each word of a panel, as it is packed or widened before.
template <bool kFetches, class F>
inline void for_words(const char* b, int64_t inner, const F& f) {
  for (int64_t l = 0; l < inner; l += 32, b += 2048) {
    for (int64_t word = 0; word < 16; ++word) {
      if constexpr (kFetches) {
        _mm_prefetch(b + word * 64 + 4096, _MM_HINT_T0);
        _mm_prefetch(b + word * 64 + 1024 + 4096, _MM_HINT_T0);
      }
      f(Columns::widened(b + word * 64));
    }
  }
}
template <bool, class F>
inline void for_words(const float* b, int64_t inner, const F& f) {
  for (int64_t l = 0; l < inner; l += 2, b += 64) f(Columns::loaded(b));
}

// T: char, of a packed panel, or float.
template <bool kPacked, class T, int rows>
__attribute__((noinline)) void rows_times_panel(const GemmBlock& g, int64_t row,
                                                const WidenedRows& a, const T* b,
                                                const SumsOfPanel& out) {
  using Step = Steps<kPacked>;
  __m512 sum[rows][2];
#pragma GCC unroll 16
  for (int r = 0; r < rows; ++r) out.begin(row + r, &sum[r][0], &sum[r][1]);
  const float *even = a.even, *odd = a.odd;
  for_words<(rows <= 3)>(b, g.inner, [&](const Columns& columns) {
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
  });
  alignas(64) float done[rows * 32];
  float* const to = g.ends ? done : out.waiting + row * 32;
#pragma GCC unroll 16
  for (int r = 0; r < rows; ++r) {
    _mm512_store_ps(to + 32 * r, sum[r][0]);
    _mm512_store_ps(to + 32 * r + 16, sum[r][1]);
  }
  if (g.ends) out.end(row, rows, done);
}

// Panels that go with all rows before the next ones do: widened they take half a megabyte, and the
// second-level cache gives what the FMA ask for, two vectors in 12 cycles. Fewer rows are not worth
// the stores, and panels are widened in registers: 160 GFLOP/s of 176 (one thread).
constexpr int64_t kStrip = 8, kWorthWidening = 3 * kRows;

template <bool kPacked>
void block_of(const GemmBlock& g) {
  static thread_local WidenedRows a;
  const bool widens = g.c.rows >= kWorthWidening;
  const int64_t floats = g.inner * 32;  // of a panel
  float* const widened = widens ? scratch<float, 10>(kStrip * floats) : nullptr;
  const auto packed = [&](int64_t column) {
    return static_cast<const char*>(g.b) + column / 32 * g.panel_bytes;
  };
  const int64_t step = widens ? 32 * kStrip : g.c.width;
  for (int64_t strip = 0; strip < g.c.width; strip += step) {
    const int64_t end = strip + step < g.c.width ? strip + step : g.c.width;
    const auto of_strip = [&](int64_t column) { return widened + (column - strip) / 32 * floats; };
    for (int64_t column = strip; column < end && widens; column += 32) {
      float* to = of_strip(column);
      for_words<false>(packed(column), g.inner, [&](const Columns& x) { x.store(to), to += 64; });
    }
    for (int64_t group = 0; group < g.c.rows; group += kRows) {
      const int64_t left = g.c.rows - group, count = left < kRows ? left : kRows;
      take_rows<kPacked>(g, group, count, a);
      for_rows_in_registers(group, group + count, [&]<int rows>(int64_t row) {
        for (int64_t column = strip; column < end; column += 32) {
          const SumsOfPanel out(g, column);
          if (widens) {
            rows_times_panel<kPacked, float, rows>(g, row, a, of_strip(column), out);
          } else {
            rows_times_panel<kPacked, char, rows>(g, row, a, packed(column), out);
          }
        }
      });
    }
  }
}

void block(const GemmBlock& g) { g.group_bytes > 0 ? block_of<true>(g) : block_of<false>(g); }

#pragma GCC pop_options

}  // namespace

const GemmCode& gemm_avx512_fma() {
  static const GemmCode code = [] {
    GemmCode c = bf16_code(block);
    c.inner_chunk = kChunk, c.block_rows = 264, c.keeps_sums = true, c.has_gelu = true;
    c.group_rows = kPairRows, c.behind_group = kBehindPairs, c.pack_transposed = pack_pairs;
    return c;
  }();
  return code;
}

}  // namespace heddle::cpu
#endif
