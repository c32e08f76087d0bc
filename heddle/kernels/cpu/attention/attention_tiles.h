// Attention in bf16 by tiles of the matrix unit: what the forward and the backward pass share.
// Weights are powers of two: scores are multiplied by scale / ln 2 instead of scale.
#pragma once

#include <algorithm>

#include "heddle/kernels/attention.h"

namespace heddle::cpu {

/// Whether attention_tiles computes this: everything is bf16, the scale is above 0, there is no
/// bias but one by pairs, and this machine has a unit for tiles.
/// It must not depend on lengths: a query that is decoded alone and the same query in its whole
/// sequence take the same path.
bool goes_by_tiles(const AttentionArgs& args);
bool goes_by_tiles(const AttentionBackwardArgs& args);
void attention_tiles(const AttentionArgs& args);
void attention_tiles_backward(const AttentionBackwardArgs& args);

/// Whether no segment has more than one query, nothing is kept for a backward pass, and there is no
/// bias.
bool is_single(const AttentionArgs& args);
/// What attention_tiles() computes of these, bit for bit, without tiles.
void attention_single(const AttentionArgs& args);

/// Keys that a query meets at a time, from the segment's first key on: sums are in the order of
/// blocks, so the size is part of the result's bits.
inline constexpr int64_t kTileKeyBlock = 64;

}  // namespace heddle::cpu

#if defined(__x86_64__)
#include "heddle/kernels/cpu/gemm/bf16_shuffle.h"
#include "heddle/kernels/cpu/gemm/bf16_tiles.h"
#include "heddle/kernels/cpu/scratch.h"

#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512vl,avx512bf16")

namespace heddle::cpu {
namespace {

constexpr float kLog2E = 0x1.715476p+0f;
constexpr float kLn2 = 0x1.62e430p-1f;

/// 2^x for |x| <= 1/2 [3e-6, our own fit].
inline __m512 exp2_near_zero(__m512 x) {
  __m512 p = _mm512_set1_ps(0x1.3a02ccp-7f);
  p = _mm512_fmadd_ps(p, x, _mm512_set1_ps(0x1.c9fc46p-5f));
  p = _mm512_fmadd_ps(p, x, _mm512_set1_ps(0x1.ec0378p-3f));
  p = _mm512_fmadd_ps(p, x, _mm512_set1_ps(0x1.62e12cp-1f));
  return _mm512_fmadd_ps(p, x, _mm512_set1_ps(1));
}

/// 2^x for x up to 127 [3e-6]; 2^-125 below -125: denormal numbers never appear. NaN
/// for NaN.
inline __m512 exp2_weight(__m512 x) {
  x = _mm512_max_ps(_mm512_set1_ps(-125), x);  // the second operand if one is NaN
  // Adding 1.5 * 2^23 rounds x to an integer, which is then in the lowest bits.
  const __m512 magic = _mm512_set1_ps(0x1.8p+23f);
  const __m512 shifted = _mm512_add_ps(x, magic);
  const __m512 p = exp2_near_zero(_mm512_sub_ps(x, _mm512_sub_ps(shifted, magic)));
  const __m512i exponent = _mm512_slli_epi32(_mm512_castps_si512(shifted), 23);
  return _mm512_castsi512_ps(_mm512_add_epi32(_mm512_castps_si512(p), exponent));
}

/// log2 x for normal x > 0: x = m 2^e with m from 0.71 to 1.42, and with s = (m - 1) / (m + 1)
/// ln m = 2 (s + s^3 / 3 + s^5 / 5 + ...) [4e-8].
inline __m512 log2_positive(__m512 x) {
  const __m512 one = _mm512_set1_ps(1);
  __m512 m = _mm512_getmant_ps(x, _MM_MANT_NORM_1_2, _MM_MANT_SIGN_src);
  __m512 e = _mm512_getexp_ps(x);
  const __mmask16 above = _mm512_cmp_ps_mask(m, _mm512_set1_ps(0x1.6a09e6p+0f), _CMP_GT_OQ);
  m = _mm512_mask_mul_ps(m, above, m, _mm512_set1_ps(0.5f));
  e = _mm512_mask_add_ps(e, above, e, one);
  const __m512 s = _mm512_div_ps(_mm512_sub_ps(m, one), _mm512_add_ps(m, one));
  const __m512 square = _mm512_mul_ps(s, s);
  __m512 p = _mm512_set1_ps(2 * kLog2E / 7);
  p = _mm512_fmadd_ps(p, square, _mm512_set1_ps(2 * kLog2E / 5));
  p = _mm512_fmadd_ps(p, square, _mm512_set1_ps(2 * kLog2E / 3));
  p = _mm512_fmadd_ps(p, square, _mm512_set1_ps(2 * kLog2E));
  return _mm512_fmadd_ps(p, s, e);
}

struct Sum {
  static __m512 of(__m512 a, __m512 b) { return _mm512_add_ps(a, b); }
};
struct Maximum {
  static __m512 of(__m512 a, __m512 b) { return _mm512_max_ps(a, b); }
};
/// Lane i: the lanes of v[i] combined, in the same order for every i; v is lost.
template <class F>
inline __m512 combine_lanes(__m512 v[16]) {
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) {
    const __m512 a = v[2 * i], b = v[2 * i + 1];
    v[i] = F::of(_mm512_unpacklo_ps(a, b), _mm512_unpackhi_ps(a, b));
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    const __m512d a = _mm512_castps_pd(v[2 * i]), b = _mm512_castps_pd(v[2 * i + 1]);
    v[i] = F::of(_mm512_castpd_ps(_mm512_unpacklo_pd(a, b)),
                 _mm512_castpd_ps(_mm512_unpackhi_pd(a, b)));
  }
#pragma GCC unroll 2
  for (int i = 0; i < 2; ++i) {
    const __m512 a = v[2 * i], b = v[2 * i + 1];
    v[i] = F::of(_mm512_shuffle_f32x4(a, b, 0x44), _mm512_shuffle_f32x4(a, b, 0xee));
  }
  return F::of(_mm512_shuffle_f32x4(v[0], v[1], 0x88), _mm512_shuffle_f32x4(v[0], v[1], 0xdd));
}
/// The lower 16 bf16 from `low`, the upper from `high`; those not in `columns` are zero.
inline __m512i to_bf16(__mmask32 columns, __m512 low, __m512 high) {
  return reinterpret_cast<__m512i>(_mm512_maskz_cvtne2ps_pbh(columns, high, low));
}
inline __m512i to_bf16(__m512 low, __m512 high) {
  return reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(high, low));
}

/// Rows [row, row + count) of x, `width` columns from `column`: rows of sums, each times its
/// factor; all have factor[0] if `step` is 0.
inline void store_rows(const Tiles& sums, int64_t count, const float* factor, int64_t step,
                       const Rows& x, int64_t row, int64_t column, int64_t width) {
  const int64_t stride = x.stride;
  // Adding zero turns -0 into +0: a masked key (+ 0 * v) cannot be told from an absent one.
  const __m512 zero = _mm512_setzero_ps();
  for (int64_t first = 0; first < count; first += kTileRows) {
    const int64_t rows = std::min(kTileRows, count - first);
    for (int64_t c = 0; c < width; c += 32) {
      const __mmask32 columns = first_16bit(width - c);
      const char* low = sums.at(first / kTileRows, c / kTileRows);
      // A tile that is not there: any will do.
      const char* high = c + 16 < width ? low + sums.column * kTileBytes : low;
      uint16_t* to = x.row<uint16_t>(row + first) + column + c;
      const float* scale = factor + first * step;
      for (int64_t i = 0; i < rows; ++i) {
        const __m512 f = _mm512_set1_ps(*scale);
        const __m512 a = _mm512_fmadd_ps(_mm512_load_ps(low + i * 64), f, zero);
        const __m512 b = _mm512_fmadd_ps(_mm512_load_ps(high + i * 64), f, zero);
        _mm512_mask_storeu_epi16(to, columns, to_bf16(a, b));
        to += stride;
        scale += step;
      }
    }
  }
}

/// Keys whose weights are decided by the same 16 random numbers of the definition.
constexpr int64_t kDropoutKeys = 128;

/// Which weights are dropped (heddle::Dropout).
class WeightDropout {
 public:
  explicit WeightDropout(const Dropout& dropout)
      : dropout_(dropout), limit_(dropout.threshold() << 16) {
    RngKey key = dropout.key;
    for (int i = 0; i < 10; ++i) {
      low_[i] = key.low, high_[i] = key.high;
      key.low += 0x9E3779B9u, key.high += 0xBB67AE85u;
    }
  }
  bool is_on() const { return dropout_.p > 0; }

  /// What kept weights are multiplied by; 1 if none is dropped.
  float scale() const { return is_on() ? dropout_.keep_scale() : 1.0f; }

  /// The kept ones of `count` weights of a row from `key` (a multiple of kDropoutKeys) on, at most
  /// kDropoutKeys: to[i * step] holds 32 of them.
  void kept_of_row(int64_t head, int64_t row, int64_t key, int64_t count, uint32_t* to,
                   int64_t step) const {
    const __m512i lane = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    __m512i words[4];
    philox(_mm512_add_epi32(splat(static_cast<uint32_t>(key / kDropoutKeys * 16)), lane),
           splat(dropout_.position[row]), splat(dropout_.sample[row]),
           splat(static_cast<uint32_t>(head)), words);
    const __m512i limit = splat(limit_);
    for (int64_t i = 0; i * kTileInner < count; ++i) {
      const __mmask16 low = _mm512_cmpge_epu32_mask(_mm512_slli_epi32(words[i], 16), limit);
      to[i * step] = _mm512_kunpackw(_mm512_cmpge_epu32_mask(words[i], limit), low);
    }
  }

 private:
  static __m512i splat(uint32_t x) { return _mm512_set1_epi32(static_cast<int>(x)); }
  static __m512i high(__m512i x) { return _mm512_srli_epi64(x, 32); }
  static __m512i xor3(__m512i a, __m512i b, __m512i c) {
    return _mm512_ternarylogic_epi32(a, b, c, 0x96);
  }
  static __m512i join(__m512i even, __m512i odd) {
    return _mm512_mask_shuffle_epi32(even, 0xaaaa, odd, static_cast<_MM_PERM_ENUM>(0xa0));
  }
  // Even lanes and odd lanes apart: a product takes the lower halves of 64 bits and fills both.
  void philox(__m512i c0, __m512i c1, __m512i c2, __m512i c3, __m512i words[4]) const {
    const __m512i m0 = splat(0xD2511F53u), m1 = splat(0xCD9E8D57u);
    __m512i e0 = c0, e1 = c1, e2 = c2, e3 = c3;
    __m512i o0 = high(c0), o1 = high(c1), o2 = high(c2), o3 = e3;
#pragma GCC unroll 10
    for (int i = 0; i < 10; ++i) {
      const __m512i k0 = splat(low_[i]), k1 = splat(high_[i]);
      const __m512i even0 = _mm512_mul_epu32(e0, m0), even2 = _mm512_mul_epu32(e2, m1);
      const __m512i odd0 = _mm512_mul_epu32(o0, m0), odd2 = _mm512_mul_epu32(o2, m1);
      e0 = xor3(high(even2), e1, k0), e1 = even2;
      o0 = xor3(high(odd2), o1, k0), o1 = odd2;
      e2 = xor3(high(even0), e3, k1), e3 = even0;
      o2 = xor3(high(odd0), o3, k1), o3 = odd0;
    }
    words[0] = join(e0, o0), words[1] = join(e1, o1);
    words[2] = join(e2, o2), words[3] = join(e3, o3);
  }

  const Dropout& dropout_;
  uint32_t limit_;  // the threshold in the upper half: what lies below it in a word decides nothing
  uint32_t low_[10], high_[10];  // the key of each round
};

/// Hands out parts of the calling thread's memory.
class TileScratch {
 public:
  TileScratch(int64_t tiles, int64_t floats) {
    thread_local Buffer memory;
    next_ = memory.reserve(tiles * kTileBytes + (floats + 16 * kMostVectors) * 4);
  }
  /// A matrix of tiles, row after row or column after column.
  Tiles rows(int64_t rows, int64_t columns) {
    return {take(rows * columns * kTileBytes), columns, 1};
  }
  Tiles columns(int64_t rows, int64_t columns) {
    return {take(rows * columns * kTileBytes), 1, rows};
  }
  template <class T>
  T* numbers(int64_t n) {
    static_assert(sizeof(T) == 4);
    return reinterpret_cast<T*>(take((n + 15) / 16 * 64));
  }

 private:
  static constexpr int64_t kMostVectors = 16;
  char* take(int64_t bytes) {
    char* part = next_;
    next_ += bytes;
    return part;
  }
  char* next_;
};

}  // namespace
}  // namespace heddle::cpu

#pragma GCC pop_options
#endif
