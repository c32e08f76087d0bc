// GELU in pieces, precise enough for what is kept in bf16.
#pragma once

#include "heddle/kernels/activation.h"

#if defined(__x86_64__)
// False in GCC 12's intrinsics (its bug 105593).
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#include <immintrin.h>
#endif

namespace heddle::cpu {

/// A function of a = |x| on [0, kGeluEnd) in 32 pieces whose middles lie 1 / kGeluPiecesPerUnit
/// apart, the first at 0: polynomials of degree 3 in the distance from the middle, counted in
/// pieces. By power, piece by piece.
struct GeluPieces {
  alignas(64) float power[4][32];
};
inline constexpr float kGeluEnd = 6, kGeluPiecesPerUnit = 31 / kGeluEnd;

/// Phi(-a), to 1e-3 of its value, and the slope of GELU at -a, to 2e-6.
const GeluPieces& pieces_of_normal_tail();
const GeluPieces& pieces_of_gelu_slope();
/// The same of GELU by tanh: what it multiplies -a by, to 3e-3 of its value, and its slope, to
/// 2e-6.
const GeluPieces& pieces_of_tanh_tail();
const GeluPieces& pieces_of_tanh_slope();
/// The tail of either; null where the activation is no GELU.
const GeluPieces* gelu_tail(Activation activation);

#if defined(__x86_64__)
#pragma GCC push_options
#pragma GCC target("avx512f")
/// Pieces in registers.
class GeluTable {
 public:
  GeluTable() = default;  ///< of no use
  explicit GeluTable(const GeluPieces& pieces) {
    for (int i = 0; i < 4; ++i) {
      power_[i][0] = _mm512_load_ps(pieces.power[i]);
      power_[i][1] = _mm512_load_ps(pieces.power[i] + 16);
    }
  }
  /// The function at -|x|; 0 from kGeluEnd on.
  __m512 at_minus(__m512 x) const {
    const __m512 a = _mm512_abs_ps(x), magic = _mm512_set1_ps(0x1.8p23f);
    const __m512 place = _mm512_mul_ps(a, _mm512_set1_ps(kGeluPiecesPerUnit));
    const __m512 shifted = _mm512_add_ps(place, magic);  // the piece's number in the lowest bits
    const __m512 t = _mm512_sub_ps(place, _mm512_sub_ps(shifted, magic));
    const __m512i piece = _mm512_castps_si512(shifted);
    __m512 p = power(3, piece);
    for (int i = 2; i >= 0; --i) p = _mm512_fmadd_ps(p, t, power(i, piece));
    const __mmask16 is_near =
        _mm512_cmp_ps_mask(a, _mm512_set1_ps(kGeluEnd), _CMP_NGE_UQ);  // NaN stays
    return _mm512_maskz_mov_ps(is_near, p);
  }
  /// At x, of a function whose values at x and -x add up to 1.
  __m512 at(__m512 x) const {
    const __m512 p = at_minus(x);
    const __mmask16 is_positive = _mm512_cmp_ps_mask(x, _mm512_setzero_ps(), _CMP_GT_OQ);
    return _mm512_mask_sub_ps(p, is_positive, _mm512_set1_ps(1), p);
  }
  /// GELU, of pieces of a tail.
  __m512 value(__m512 x) const { return _mm512_mul_ps(x, at(x)); }

 private:
  __m512 power(int i, __m512i piece) const {
    return _mm512_permutex2var_ps(power_[i][0], piece, power_[i][1]);
  }
  __m512 power_[4][2];
};
#pragma GCC pop_options
#endif

}  // namespace heddle::cpu
