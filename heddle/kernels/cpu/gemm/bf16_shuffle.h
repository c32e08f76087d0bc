// Shuffles of bf16 that bring matrices into the order of the matrix units, and widening.
#pragma once

#if defined(__x86_64__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"  // both false in GCC 12's intrinsics
#pragma GCC diagnostic ignored "-Wuninitialized"        // (its bug 105593)
#include <immintrin.h>

#include <cstdint>

#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512vl")

namespace heddle::cpu {
namespace {

/// The first n of 32 elements; none for n < 0.
inline __mmask32 first_16bit(int64_t n) { return n >= 32 ? ~0u : (1u << (n < 0 ? 0 : n)) - 1u; }

/// The 16 even and the 16 odd of 32 elements, as f32.
inline __m512 even(__m512i x) { return _mm512_castsi512_ps(_mm512_slli_epi32(x, 16)); }
inline __m512 odd(__m512i x) {
  return _mm512_castsi512_ps(_mm512_and_si512(x, _mm512_set1_epi32(-0x10000)));
}

/// r[i] holds row i of 16x16 words of 32 bits; afterwards column i.
inline void transpose_16x16(__m512i r[16]) {
  __m512i t[16];
#pragma GCC unroll 8
  for (int i = 0; i < 16; i += 2) {
    t[i] = _mm512_unpacklo_epi32(r[i], r[i + 1]);
    t[i + 1] = _mm512_unpackhi_epi32(r[i], r[i + 1]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 16; i += 4) {
    r[i] = _mm512_unpacklo_epi64(t[i], t[i + 2]);
    r[i + 1] = _mm512_unpackhi_epi64(t[i], t[i + 2]);
    r[i + 2] = _mm512_unpacklo_epi64(t[i + 1], t[i + 3]);
    r[i + 3] = _mm512_unpackhi_epi64(t[i + 1], t[i + 3]);
  }
  // Now 128-bit lane j of r[4 g + i] holds column 4 j + i of rows 4 g .. 4 g + 3.
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    t[i] = _mm512_shuffle_i32x4(r[i], r[4 + i], 0x44);
    t[4 + i] = _mm512_shuffle_i32x4(r[i], r[4 + i], 0xee);
    t[8 + i] = _mm512_shuffle_i32x4(r[8 + i], r[12 + i], 0x44);
    t[12 + i] = _mm512_shuffle_i32x4(r[8 + i], r[12 + i], 0xee);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    r[i] = _mm512_shuffle_i32x4(t[i], t[8 + i], 0x88);
    r[4 + i] = _mm512_shuffle_i32x4(t[i], t[8 + i], 0xdd);
    r[8 + i] = _mm512_shuffle_i32x4(t[4 + i], t[12 + i], 0x88);
    r[12 + i] = _mm512_shuffle_i32x4(t[4 + i], t[12 + i], 0xdd);
  }
}

/// Two rows of 32 elements, word by word: low holds the pairs of columns 0-15, high of 16-31.
inline void interleave(__m512i a, __m512i b, __m512i* low, __m512i* high) {
  const __m512i even = _mm512_unpacklo_epi16(a, b), odd = _mm512_unpackhi_epi16(a, b);
  // even holds columns 0-3, 8-11, 16-19, 24-27; odd the others.
  const __m512i first = _mm512_setr_epi64(0, 1, 8, 9, 2, 3, 10, 11);
  const __m512i second = _mm512_setr_epi64(4, 5, 12, 13, 6, 7, 14, 15);
  *low = _mm512_permutex2var_epi64(even, first, odd);
  *high = _mm512_permutex2var_epi64(even, second, odd);
}

}  // namespace
}  // namespace heddle::cpu

#pragma GCC pop_options
#endif
