// Random rows, and gradients held against the slope of a loss.
#pragma once

#include <cmath>
#include <random>
#include <vector>

#include "heddle/autograd/tape.h"
#include "heddle/nn/parameters.h"

namespace heddle::nn {

/// [rows, width], normal, of a seed.
inline Tensor random_rows(int64_t rows, int64_t width, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(rows * width);
  for (float& v : values) v = normal(random);
  return Tensor::from(values, {rows, width});
}

inline double squared_length(const std::vector<float>& gradient) {
  double squares = 0;
  for (const float x : gradient) squares += double{x} * x;
  return squares;
}

/// How fast `loss` grows along the gradient that the parameter has, by central differences, as a
/// multiple of the gradient's squared length: 1 if it is right.
template <class Loss>
double slope_along_gradient(Parameter& p, const Loss& loss) {
  const std::vector<float> g = p.grad().to_floats();
  const double squares = squared_length(g);
  const auto step = static_cast<float>(2e-3 / std::sqrt(squares));
  const auto moved = [&](float by) {
    const NoGrad off;
    for (size_t i = 0; i < g.size(); ++i) p.value().data<float>()[i] += by * g[i];
    p.changed(true);
    const double value = loss().item();
    for (size_t i = 0; i < g.size(); ++i) p.value().data<float>()[i] -= by * g[i];
    p.changed(true);
    return value;
  };
  return (moved(step) - moved(-step)) / (2 * step) / squares;
}

}  // namespace heddle::nn
