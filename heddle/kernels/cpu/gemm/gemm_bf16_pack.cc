// The packed form of bf16 factors, for AMX and for the dot products of AVX-512.
#if defined(__x86_64__)
#include <algorithm>

#include "heddle/kernels/cpu/gemm/bf16_shuffle.h"
#include "heddle/kernels/cpu/gemm/bf16_tiles.h"
#include "heddle/kernels/cpu/gemm/gemm_block.h"

namespace heddle::cpu {
namespace {

#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512vl")

// 16 values rounded to bf16, to nearest even; NaN stays NaN (as `narrow` in simd-inl.h: the CPU's
// own instruction makes zeros of the smallest numbers).
inline __m256i rounded(__m512 v) {
  const __m512i u = _mm512_castps_si512(v);
  const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(u, 16), _mm512_set1_epi32(1));
  const __m512i half = _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff));
  const __m512i near = _mm512_srli_epi32(_mm512_add_epi32(u, half), 16);
  const __m512i quiet = _mm512_or_si512(_mm512_srli_epi32(u, 16), _mm512_set1_epi32(0x40));
  const __mmask16 is_nan = _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q);
  return _mm512_cvtepi32_epi16(_mm512_mask_mov_epi32(near, is_nan, quiet));
}

// Some of 32 elements of bf16, or of f32 rounded; zeros beside them.
inline __m512i load_32(const uint16_t* p, __mmask32 which) {
  return _mm512_maskz_loadu_epi16(which, p);
}
inline __m512i load_32(const float* p, __mmask32 which) {
  const __m512 low = _mm512_maskz_loadu_ps(static_cast<__mmask16>(which), p);
  const __m512 high = _mm512_maskz_loadu_ps(static_cast<__mmask16>(which >> 16), p + 16);
  return _mm512_inserti64x4(_mm512_castsi256_si512(rounded(low)), rounded(high), 1);
}

// Rows 2 p and 2 p + 1 of x, columns [0, columns) of 32, word by word: the pairs of columns 0-15
// and of 16-31.
template <class T>
inline void interleave(const Rows& x, int64_t p, __mmask32 columns, __m512i* low, __m512i* high) {
  const __m512i zero = _mm512_setzero_si512();
  const __m512i a = load_32(x.row<T>(2 * p), columns);
  const __m512i b = 2 * p + 1 < x.rows ? load_32(x.row<T>(2 * p + 1), columns) : zero;
  interleave(a, b, low, high);
}

// b [n, inner]: 16 rows by 32 inner elements are 16x16 pairs to transpose.
template <class T>
void pack_transposed(const Rows& b, char* to) {
  for (int64_t l = 0; l < b.width; l += 32) {
    const __mmask32 inner = first_16bit(b.width - l);
    for (int64_t n = 0; n < 32; n += 16) {
      __m512i r[16];
#pragma GCC unroll 16
      for (int i = 0; i < 16; ++i) {
        r[i] = n + i < b.rows ? load_32(b.row<T>(n + i) + l, inner) : _mm512_setzero_si512();
      }
      transpose_16x16(r);
#pragma GCC unroll 16
      for (int i = 0; i < 16; ++i) _mm512_store_si512(to + i * 64, r[i]);
      to += kTileBytes;
    }
  }
}

template <class T>
void pack_plain(const Rows& b, char* to) {
  const __mmask32 columns = first_16bit(b.width);
  const __m512i zero = _mm512_setzero_si512();
  for (int64_t l = 0; l < b.rows; l += 32) {
    for (int64_t i = 0; i < 16; ++i) {
      __m512i low = zero, high = zero;
      if (l + 2 * i < b.rows) interleave<T>(b, l / 2 + i, columns, &low, &high);
      _mm512_store_si512(to + i * 64, low);
      _mm512_store_si512(to + kTileBytes + i * 64, high);
    }
    to += 2 * kTileBytes;
  }
}

template <class T>
void pack_panel(const Rows& b, bool transposed, char* panel) {
  if (transposed) {
    pack_transposed<T>(b.slice(0, b.rows < 32 ? b.rows : 32), panel);
  } else {
    pack_plain<T>(b.columns(0, b.width < 32 ? b.width : 32), panel);
  }
}

}  // namespace

void pack_bf16(const Rows& b, bool transposed, void* panel) {
  auto* const to = static_cast<char*>(panel);
  b.dtype == DType::f32 ? pack_panel<float>(b, transposed, to)
                        : pack_panel<uint16_t>(b, transposed, to);
}

void pack_transposed_bf16(const Rows& a, void* to) {
  const __m512i zero = _mm512_setzero_si512();
  char* tile = static_cast<char*>(to);
  for (int64_t m = 0; m < a.width; m += 32) {
    const int64_t left = a.width - m;
    const Rows part = a.columns(m, left < 32 ? left : 32);
    const __mmask32 columns = first_16bit(left);
    for (int64_t l = 0; l < a.rows; l += 32) {
      __m512i low[16], high[16];
#pragma GCC unroll 16
      for (int i = 0; i < 16; ++i) {
        low[i] = high[i] = zero;
        if (l + 2 * i < a.rows) interleave<uint16_t>(part, l / 2 + i, columns, &low[i], &high[i]);
      }
      transpose_16x16(low);
#pragma GCC unroll 16
      for (int i = 0; i < 16; ++i) _mm512_store_si512(tile + i * 64, low[i]);
      transpose_16x16(high);
#pragma GCC unroll 16
      for (int i = 0; i < 16; ++i) _mm512_store_si512(tile + kTileBytes + i * 64, high[i]);
      tile += 2 * kTileBytes;
    }
  }
}

#pragma GCC pop_options

}  // namespace heddle::cpu
#endif
