// The cubics, through values of erfc and exp in f64.
#include "heddle/kernels/cpu/gelu_pieces.h"

#include <cmath>
#include <numbers>

namespace heddle::cpu {

namespace {

double normal_tail(double a) { return 0.5 * std::erfc(a / std::numbers::sqrt2); }
double slope_at_minus(double a) {
  const double density = std::exp(-a * a / 2) / std::sqrt(2 * std::numbers::pi);
  return normal_tail(a) - a * density;
}
// (1 - tanh u) / 2 = 1 / (1 + e^2u), u = sqrt(2 / pi) (a + 0.044715 a^3)
double tanh_tail(double a) {
  return 1 / (1 + std::exp(2 * std::sqrt(2 / std::numbers::pi) * a * (1 + 0.044715 * a * a)));
}
double tanh_slope_at_minus(double a) {
  const double s = tanh_tail(a);
  const double du = 2 * std::sqrt(2 / std::numbers::pi) * (1 + 3 * 0.044715 * a * a);
  return s - a * s * (1 - s) * du;
}

// The cubic through Chebyshev's four points of each piece.
template <class F>
GeluPieces pieces_of(const F& f) {
  const double far = 0.5 * std::cos(std::numbers::pi / 8);
  const double near = 0.5 * std::cos(3 * std::numbers::pi / 8);
  GeluPieces pieces;
  for (int i = 0; i < 32; ++i) {
    const auto at = [&](double t) { return f((i + t) / kGeluPiecesPerUnit); };
    // The even part is through the means of both sides, the odd part through half the differences.
    const double even_near = (at(near) + at(-near)) / 2, even_far = (at(far) + at(-far)) / 2;
    const double odd_near = (at(near) - at(-near)) / (2 * near);
    const double odd_far = (at(far) - at(-far)) / (2 * far);
    const double span = far * far - near * near;
    const double square = (even_far - even_near) / span, cube = (odd_far - odd_near) / span;
    pieces.power[0][i] = static_cast<float>(even_near - square * near * near);
    pieces.power[1][i] = static_cast<float>(odd_near - cube * near * near);
    pieces.power[2][i] = static_cast<float>(square);
    pieces.power[3][i] = static_cast<float>(cube);
  }
  return pieces;
}

}  // namespace

const GeluPieces& pieces_of_normal_tail() {
  static const GeluPieces pieces = pieces_of(normal_tail);
  return pieces;
}
const GeluPieces& pieces_of_gelu_slope() {
  static const GeluPieces pieces = pieces_of(slope_at_minus);
  return pieces;
}
const GeluPieces& pieces_of_tanh_tail() {
  static const GeluPieces pieces = pieces_of(tanh_tail);
  return pieces;
}
const GeluPieces* gelu_tail(Activation activation) {
  return activation == Activation::gelu       ? &pieces_of_normal_tail()
         : activation == Activation::gelu_new ? &pieces_of_tanh_tail()
                                              : nullptr;
}
const GeluPieces& pieces_of_tanh_slope() {
  static const GeluPieces pieces = pieces_of(tanh_slope_at_minus);
  return pieces;
}

}  // namespace heddle::cpu
