// Matrix products of f32 and of bf16 by the FMA of AVX-512. f32: on Intel's cores, whose
// first-level cache need not hold a panel. bf16: for CPUs without dot products of bf16 pairs, and
// for those that take longer over one of these than over the FMA that do the same (Intel's Xeons
// since 2023, where AMX is not to be had: 12 dot products 8.9 ns, the 24 FMA 4.4; 2026-11). Factors
// stay bf16 in memory: rows of a are widened a few at a time, panels in registers or, for many
// rows, before. Along the inner dimension a sum grows element by element and then chunk by chunk,
// so that rows beside it and panels change none of its bits.
#if defined(__x86_64__)
#include "heddle/kernels/cpu/gemm/bf16_shuffle.h"
#include "heddle/kernels/cpu/gemm/gemm_panel.h"
#include "heddle/kernels/cpu/scratch.h"

namespace heddle::cpu {
namespace {

#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512vl,avx512bf16")

// Rows of sums that registers hold; their numbers lie in the first-level cache as f32. A word is a
// pair of inner elements; where words of bf16 have been widened, the even and the odd elements lie
// apart.
constexpr int64_t kRows = kPairRows;
constexpr int64_t kChunk = 512;
struct alignas(64) RowsOfBlock {
  static constexpr int64_t kHalf = kRows * (kChunk / 2 + 16);
  float numbers[2 * kHalf];
};

// Floats from the even element to the odd one, from one row and from one word to the next. Rows
// that lie apart do not lie a multiple of 4 KB apart.
template <class T, bool kPacked>
struct NumberSteps {
  static constexpr bool kIsWidened = std::is_same_v<T, bf16>;
  static constexpr int64_t kOdd = kIsWidened ? RowsOfBlock::kHalf : kPacked ? kRows : 1;
  static constexpr int64_t kRow = kPacked ? 1 : (kIsWidened ? kChunk / 2 : kChunk) + 16;
  static constexpr int64_t kWord = (kPacked ? kRows : 1) * (kIsWidened ? 1 : 2);
};

// Numbers of a row, or of a group of rows.
inline void take_numbers(const bf16* from, int64_t count, float* to) {
  for (int64_t i = 0; i < count / 2; i += 16) {
    const __m512i x = _mm512_loadu_si512(from + 2 * i);
    _mm512_store_ps(to + i, even(x));
    _mm512_store_ps(to + RowsOfBlock::kHalf + i, odd(x));
  }
}
inline void take_numbers(const float* from, int64_t count, float* to) {
  __builtin_memcpy(to, from, count * sizeof(float));
}

// Numbers of rows [row, row + rows) of a block.
template <class T, bool kPacked>
const float* numbers_of(const GemmBlock& g, int64_t row, int64_t rows) {
  float* const to = scratch<RowsOfBlock>(1)->numbers;
  if constexpr (kPacked) {
    const char* const group = static_cast<const char*>(g.a) + row / kRows * g.group_bytes;
    if constexpr (std::is_same_v<T, float>) return reinterpret_cast<const float*>(group);
    take_numbers(reinterpret_cast<const T*>(group), g.inner * kRows, to);
  } else {
    for (int64_t r = 0; r < rows; ++r) {
      take_numbers(static_cast<const T*>(g.a) + (row + r) * g.a_stride, g.inner,
                   to + r * NumberSteps<T, kPacked>::kRow);
    }
  }
  return to;
}

// Where sums of rows of a panel come from, and where they go.
struct SumsOfPanel : PanelOut {
  float* waiting;  // those of the chunks before, and then of these, too
  SumsOfPanel(const GemmBlock& block, int64_t first)
      : PanelOut(block, first), waiting(block.sums + first / 32 * rows_of_sums(block) * 32) {}

  // What the sums of a row of this chunk are added to: shorter chains round less.
  RowOfSums before(int64_t row) const {
    RowOfSums sums = {_mm512_setzero_ps(), _mm512_setzero_ps()};
    if (!g->begins) {
      sums.low = _mm512_load_ps(waiting + row * 32);
      sums.high = _mm512_load_ps(waiting + row * 32 + 16);
    } else if (g->accumulate) {
      load(row, &sums.low, &sums.high);
    }
    return sums;
  }
  // sums: [rows, 32], with their bias
  void end(int64_t row, int64_t rows, const float* sums) const {
    write_rows(*this, row, rows, [sums](int64_t i) {
      return RowOfSums{_mm512_load_ps(sums + 32 * i), _mm512_load_ps(sums + 32 * i + 16)};
    });
  }

 private:
  static int64_t rows_of_sums(const GemmBlock& g) {
    return g.begins && g.ends ? 0 : (g.c.rows + kRows - 1) / kRows * kRows;
  }
};

// The 32 columns of a word of a panel: of its even element, then of its odd one.
struct WordColumns {
  __m512 even[2], odd[2];

  static WordColumns widened(const char* word) {
    WordColumns x;
#pragma GCC unroll 2
    for (int half = 0; half < 2; ++half) {
      const __m512i both = _mm512_loadu_si512(word + half * 1024);
      x.even[half] = cpu::even(both), x.odd[half] = cpu::odd(both);
    }
    return x;
  }
  static WordColumns loaded(const float* word) {
    return {{_mm512_load_ps(word), _mm512_load_ps(word + 16)},
            {_mm512_load_ps(word + 32), _mm512_load_ps(word + 48)}};
  }
  void store(float* word) const {
    _mm512_store_ps(word, even[0]), _mm512_store_ps(word + 16, even[1]);
    _mm512_store_ps(word + 32, odd[0]), _mm512_store_ps(word + 48, odd[1]);
  }
};

// Products of so few rows wait for weights, which are fetched so many bytes ahead: 99 -> 112 tokens
// of GPT-2 a second, all that plain reads give (two threads).
constexpr int kFewRows = 3;
constexpr int64_t kAhead = 4096;

// Calls f(columns) for each word of a panel, as it is packed or widened before.
template <bool kFetches, class F>
inline void for_words(const char* b, int64_t inner, const F& f) {
  for (int64_t l = 0; l < inner; l += 32, b += 2048) {
    for (int64_t word = 0; word < 16; ++word) {
      if constexpr (kFetches) {
        _mm_prefetch(b + kAhead + word * 64, _MM_HINT_T0);
        _mm_prefetch(b + kAhead + word * 64 + 1024, _MM_HINT_T0);
      }
      f(WordColumns::widened(b + word * 64));
    }
  }
}
template <bool kFetches, class F>
inline void for_words(const float* b, int64_t inner, const F& f) {
  for (int64_t l = 0; l + 1 < inner; l += 2, b += 64) {
    if constexpr (kFetches) {
      const char* const at = reinterpret_cast<const char*>(b) + 2 * kAhead;
      for (int line = 0; line < 4; ++line) _mm_prefetch(at + 64 * line, _MM_HINT_T0);
    }
    f(WordColumns::loaded(b));
  }
}

// T: of a; Panel: char, of a packed panel of bf16, or float.
template <class T, bool kPacked, class Panel, int rows>
__attribute__((noinline)) void rows_times_panel(const GemmBlock& g, int64_t row, const float* a,
                                                const Panel* b, const SumsOfPanel& out) {
  using Step = NumberSteps<T, kPacked>;
  __m512 sum[rows][2];
#pragma GCC unroll 16
  for (int r = 0; r < rows; ++r) sum[r][0] = sum[r][1] = _mm512_setzero_ps();
  const auto add = [&](const float* of_row, const __m512(&columns)[2]) {
#pragma GCC unroll 16
    for (int r = 0; r < rows; ++r) {
      const __m512 x = _mm512_set1_ps(of_row[r * Step::kRow]);
      sum[r][0] = _mm512_fmadd_ps(x, columns[0], sum[r][0]);
      sum[r][1] = _mm512_fmadd_ps(x, columns[1], sum[r][1]);
    }
  };
  for_words<(rows <= kFewRows)>(b, g.inner, [&](const WordColumns& columns) {
    add(a, columns.even);
    add(a + Step::kOdd, columns.odd);
    a += Step::kWord;
  });
  if constexpr (std::is_same_v<T, float>) {  // bf16 is filled up to words
    if (g.inner % 2 != 0) {
      const float* const last = b + (g.inner - 1) * 32;
      const __m512 columns[2] = {_mm512_load_ps(last), _mm512_load_ps(last + 16)};
      add(a, columns);
    }
  }
  if (!g.begins || g.accumulate) {
#pragma GCC unroll 16
    for (int r = 0; r < rows; ++r) {
      const RowOfSums before = out.before(row + r);
      sum[r][0] = _mm512_add_ps(before.low, sum[r][0]);
      sum[r][1] = _mm512_add_ps(before.high, sum[r][1]);
    }
  }
  alignas(64) float done[rows * 32];
  float* to = out.waiting + row * 32;
  int64_t stride = 32;
  const bool is_plain = g.ends && out.is_plain();
  if (g.ends) {
#pragma GCC unroll 16
    for (int r = 0; r < rows; ++r) {
      sum[r][0] = _mm512_add_ps(sum[r][0], out.bias_low);
      sum[r][1] = _mm512_add_ps(sum[r][1], out.bias_high);
    }
    to = done;
    if (is_plain) to = g.c.row<float>(row) + out.column, stride = g.c.stride;
  }
#pragma GCC unroll 16
  for (int r = 0; r < rows; ++r) {
    _mm512_storeu_ps(to + r * stride, sum[r][0]);
    _mm512_storeu_ps(to + r * stride + 16, sum[r][1]);
  }
  if (g.ends && !is_plain) out.end(row, rows, done);
}

// Panels that go with all rows before the next ones do: as f32 they take half a megabyte, and the
// second-level cache gives what the FMA ask for, two vectors in 12 cycles. Where bf16 has fewer
// rows than are worth the stores, its panels are widened in registers: 160 GFLOP/s of 176 (one
// thread).
constexpr int64_t kStrip = 8, kWorthWidening = 3 * kRows;

template <class T, bool kPacked>
void block_of(const GemmBlock& g) {
  constexpr bool kIsWidened = std::is_same_v<T, bf16>;
  const bool widens = kIsWidened && g.c.rows >= kWorthWidening;
  const int64_t floats = g.inner * 32, panels = (g.c.width + 31) / 32;  // of a panel; of the block
  float* const widened =
      widens ? scratch<float, 10>((panels < kStrip ? panels : kStrip) * floats) : nullptr;
  const auto packed = [&](int64_t column) {
    return static_cast<const char*>(g.b) + column / 32 * g.panel_bytes;
  };
  const int64_t step = g.c.rows > kRows ? 32 * kStrip : g.c.width;
  for (int64_t strip = 0; strip < g.c.width; strip += step) {
    const int64_t end = strip + step < g.c.width ? strip + step : g.c.width;
    const auto of_strip = [&](int64_t column) { return widened + (column - strip) / 32 * floats; };
    for (int64_t column = strip; column < end && widens; column += 32) {
      float* to = of_strip(column);
      for_words<false>(packed(column), g.inner,
                       [&](const WordColumns& x) { x.store(to), to += 64; });
    }
    for (int64_t group = 0; group < g.c.rows; group += kRows) {
      const int64_t left = g.c.rows - group, count = left < kRows ? left : kRows;
      const float* const a = numbers_of<T, kPacked>(g, group, count);
      for_rows_in_registers<kRows>(group, group + count, [&]<int rows>(int64_t row) {
        for (int64_t column = strip; column < end; column += 32) {
          const SumsOfPanel out(g, column);
          const auto times = [&](const auto* b) {
            using Panel = std::remove_cvref_t<decltype(*b)>;
            rows_times_panel<T, kPacked, Panel, rows>(g, row, a, b, out);
          };
          if constexpr (!kIsWidened) {
            times(reinterpret_cast<const float*>(packed(column)));
          } else if (widens) {
            times(of_strip(column));
          } else {
            times(packed(column));
          }
        }
      });
    }
  }
}

template <class T>
void block(const GemmBlock& g) {
  g.group_bytes > 0 ? block_of<T, true>(g) : block_of<T, false>(g);
}

#pragma GCC pop_options

}  // namespace

const GemmCode& gemm_avx512_fma() {
  static const GemmCode code = [] {
    GemmCode c = bf16_code(block<bf16>);
    c.inner_chunk = kChunk, c.block_rows = 264, c.keeps_sums = true, c.has_gelu = true;
    // Two threads: 192x576x32000 236 -> 273 GFLOP/s, 512x2048x1792 278 -> 290; more rows of a than
    // the second-level cache has room for, or a larger c (10000x128x832), 257 -> 203.
    c.of_both = {.inner = kChunk, .sums = 272 << 10, .rows = 528, .most = 1152 << 10};
    c.group_rows = kPairRows, c.behind_group = kBehindPairs, c.pack_transposed = pack_pairs;
    return c;
  }();
  return code;
}

GemmCode gemm_avx512_f32(GemmCode code) {
  code.inner_chunk = kChunk, code.block_rows = 264, code.keeps_sums = true, code.has_tail = true;
  code.block = block<float>;
  return code;
}

}  // namespace heddle::cpu
#endif
