// Products of tiles by the dot products of AVX-512 BF16 or by FMA: eight rows of up to three tiles
// at a time.
#if defined(__x86_64__)
#include "heddle/kernels/cpu/gemm/bf16_shuffle.h"
#include "heddle/kernels/cpu/gemm/bf16_tiles.h"

#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512vl,avx512bf16")

namespace heddle::cpu {
namespace {

constexpr int kRows = 8;  // of sums at a time

// sum += products of the 16 pairs of a tile of kRows rows of a with kColumns tiles of b, `right`
// bytes apart.
struct ByDots {
  template <int kColumns>
  static void add(const char* a, const char* b, int64_t right, __m512 (&sum)[kRows][kColumns]) {
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
  }
};
struct ByFma {
  template <int kColumns>
  static void add(const char* a, const char* b, int64_t right, __m512 (&sum)[kRows][kColumns]) {
    alignas(64) float evens[kRows][16], odds[kRows][16];
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      const __m512i x = _mm512_load_si512(a + r * 64);
      _mm512_store_ps(evens[r], even(x));
      _mm512_store_ps(odds[r], odd(x));
    }
    for (int64_t pair = 0; pair < 16; ++pair) {
      __m512 x[kColumns], y[kColumns];
#pragma GCC unroll 3
      for (int t = 0; t < kColumns; ++t) {
        const __m512i both = _mm512_load_si512(b + t * right + pair * 64);
        x[t] = even(both), y[t] = odd(both);
      }
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) {
        const __m512 of_row = _mm512_set1_ps(evens[r][pair]);
#pragma GCC unroll 3
        for (int t = 0; t < kColumns; ++t) sum[r][t] = _mm512_fmadd_ps(of_row, x[t], sum[r][t]);
      }
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) {
        const __m512 of_row = _mm512_set1_ps(odds[r][pair]);
#pragma GCC unroll 3
        for (int t = 0; t < kColumns; ++t) sum[r][t] = _mm512_fmadd_ps(of_row, y[t], sum[r][t]);
      }
    }
  }
};

// kRows rows of kColumns tiles of sums.
template <class Products, int kColumns>
inline void multiply_rows(const TileProduct& p, const char* a, const char* b, char* c) {
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
    Products::template add<kColumns>(a, b, right, sum);
    a += p.left.column * kTileBytes, b += p.right.row * kTileBytes;
  }
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 3
    for (int t = 0; t < kColumns; ++t) _mm512_store_ps(c + t * sums + r * 64, sum[r][t]);
  }
}

// All rows of kColumns columns of tiles from `column` on.
template <class Products, int kColumns>
inline void multiply_columns(const TileProduct& p, int64_t column) {
  constexpr int64_t kHalf = kTileBytes / 2;
  for (int64_t row = 0; row < p.rows; ++row) {
    for (int64_t half = 0; half < kTileBytes; half += kHalf) {
      multiply_rows<Products, kColumns>(p, p.left.at(row, 0) + half, p.right.at(0, column),
                                        p.sum.at(row, column) + half);
    }
  }
}

// Three tiles at a time but for the last one, two or four: sums of one alone would wait.
template <class Products>
void multiply(const TileProduct& p) {
  int64_t column = 0;
  for (; p.columns - column > 4 || p.columns - column == 3; column += 3) {
    multiply_columns<Products, 3>(p, column);
  }
  for (; p.columns - column >= 2; column += 2) multiply_columns<Products, 2>(p, column);
  if (column < p.columns) multiply_columns<Products, 1>(p, column);
}

}  // namespace

void multiply_tiles_by_dots(const TileProduct& p) { multiply<ByDots>(p); }
void multiply_tiles_by_fma(const TileProduct& p) { multiply<ByFma>(p); }

}  // namespace heddle::cpu

#pragma GCC pop_options
#endif
