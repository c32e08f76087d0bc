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

/// How fast `loss` grows along a direction of the parameter's length, by central differences, for
/// each unit of it.
template <class Loss>
double slope_along(const std::vector<float>& direction, Parameter& p, const Loss& loss) {
  const double length = std::sqrt(squared_length(direction));
  const auto step = static_cast<float>(2e-3 / length);
  const auto moved = [&](float by) {
    const NoGrad off;
    for (size_t i = 0; i < direction.size(); ++i) p.value().data<float>()[i] += by * direction[i];
    p.changed(true);
    const double value = loss().item();
    for (size_t i = 0; i < direction.size(); ++i) p.value().data<float>()[i] -= by * direction[i];
    p.changed(true);
    return value;
  };
  return (moved(step) - moved(-step)) / (2 * step) / length;
}

/// How fast `loss` grows along the gradient that the parameter has, as a multiple of the gradient's
/// length: 1 if it is right, or lacks some of its elements.
template <class Loss>
double slope_along_gradient(Parameter& p, const Loss& loss) {
  const std::vector<float> g = p.grad().to_floats();
  return slope_along(g, p, loss) / std::sqrt(squared_length(g));
}

/// The slope along a random direction beside what the gradient says of it, as a multiple of the
/// gradient's mean square element: 0 if it is right and lacks nothing.
template <class Loss>
double slope_apart_from_gradient(Parameter& p, const Loss& loss) {
  const std::vector<float> g = p.grad().to_floats();
  const std::vector<float> d = random_rows(1, static_cast<int64_t>(g.size()), 77).to_floats();
  double expected = 0;
  for (size_t i = 0; i < g.size(); ++i) expected += double{g[i]} * d[i];
  const double length = std::sqrt(squared_length(d));
  return (slope_along(d, p, loss) - expected / length) /
         std::sqrt(squared_length(g) / static_cast<double>(g.size()));
}

}  // namespace heddle::nn
