// GELU in pieces, precise enough for what is kept in bf16.
#pragma once

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

}  // namespace heddle::cpu
