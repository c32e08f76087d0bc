// Products of tiles by the dot products of AVX-512 BF16: eight rows of up to three
// tiles at a time.
#if defined(__x86_64__)
#include "heddle/kernels/cpu/gemm/bf16_shuffle.h"
#include "heddle/kernels/cpu/gemm/bf16_tiles.h"

#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512vl,avx512bf16")

namespace heddle::cpu {
namespace {

// Eight rows of kColumns tiles of sums.
template <int kColumns>
inline void multiply_rows(const TileProduct& p, const char* a, const char* b, char* c) {
  constexpr int kRows = 8;
  const int64_t right = p.right.column * kTileBytes, sums = p.sum.column * kTileBytes;
  __m512 sum[kRows][kColumns];
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 3
    for (int t = 0; t < kColumns; ++t) {
      sum[r][t] = p.accumulate ? _mm512_load_ps(c + t * sums + r * 64) : _mm512_setzero_ps();
    }
  }
  for (int64_t l = 0; l < p.inner; ++l) {
    for (int64_t pair = 0; pair < 16; ++pair) {
      __m512i x[kColumns];
#pragma GCC unroll 3
      for (int t = 0; t < kColumns; ++t) x[t] = _mm512_load_si512(b + t * right + pair * 64);
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) {
        int both;
        __builtin_memcpy(&both, a + r * 64 + pair * 4, sizeof both);
        const __m512i y = _mm512_set1_epi32(both);
#pragma GCC unroll 3
        for (int t = 0; t < kColumns; ++t) {
          sum[r][t] = _mm512_dpbf16_ps(sum[r][t], reinterpret_cast<__m512bh>(y),
                                       reinterpret_cast<__m512bh>(x[t]));
        }
      }
    }
    a += p.left.column * kTileBytes, b += p.right.row * kTileBytes;
  }
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 3
    for (int t = 0; t < kColumns; ++t) _mm512_store_ps(c + t * sums + r * 64, sum[r][t]);
  }
}

// All rows of kColumns columns of tiles from `column` on.
template <int kColumns>
inline void multiply_columns(const TileProduct& p, int64_t column) {
  constexpr int64_t kHalf = kTileBytes / 2;
  for (int64_t row = 0; row < p.rows; ++row) {
    for (int64_t half = 0; half < kTileBytes; half += kHalf) {
      multiply_rows<kColumns>(p, p.left.at(row, 0) + half, p.right.at(0, column),
                              p.sum.at(row, column) + half);
    }
  }
}

}  // namespace

// Three tiles at a time but for the last one, two or four: sums of one alone would wait.
void multiply_tiles_by_dots(const TileProduct& p) {
  int64_t column = 0;
  for (; p.columns - column > 4 || p.columns - column == 3; column += 3) {
    multiply_columns<3>(p, column);
  }
  for (; p.columns - column >= 2; column += 2) multiply_columns<2>(p, column);
  if (column < p.columns) multiply_columns<1>(p, column);
}

}  // namespace heddle::cpu

#pragma GCC pop_options
#endif
