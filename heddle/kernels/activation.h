// Kernels of activations and dropout.
#pragma once

#include <algorithm>
#include <cmath>
#include <numbers>

#include "heddle/kernels/dropout.h"
#include "heddle/kernels/family.h"

namespace heddle {

enum class Activation : uint8_t { none, relu, gelu, gelu_new, silu, tanh };

namespace definition {

/// Value and slope at x.
struct Curve {
  double value, slope;
};
inline Curve curve(Activation kind, double x) {
  const double root = std::sqrt(2 / std::numbers::pi);
  switch (kind) {
    case Activation::none: return {x, 1};
    case Activation::relu: return {std::max(x, 0.0), x > 0 ? 1.0 : 0.0};
    case Activation::gelu: {
      const double cdf = 0.5 * std::erfc(-x / std::numbers::sqrt2);
      return {x * cdf, cdf + x * std::exp(-x * x / 2) * root / 2};
    }
    case Activation::gelu_new: {
      const double t = std::tanh(root * (x + 0.044715 * x * x * x));
      return {x * (1 + t) / 2,
              (1 + t) / 2 + x * (1 - t * t) / 2 * root * (1 + 3 * 0.044715 * x * x)};
    }
    case Activation::silu: {
      const double s = 1 / (1 + std::exp(-x));
      return {x * s, s + x * s * (1 - s)};
    }
    case Activation::tanh: return {std::tanh(x), 1 - std::tanh(x) * std::tanh(x)};
  }
  return {};
}
inline void activation(Activation kind, Rows x, const Dropout& dropout, Rows y) {
  fill_elements(y, [&](int64_t r, int64_t c) {
    return curve(kind, element(x, r, c)).value * dropout.factor(r, c);
  });
}
inline void activation_backward(Activation kind, Rows x, Rows dy, const Dropout& dropout, Rows dx) {
  fill_elements(dx, [&](int64_t r, int64_t c) {
    return element(dy, r, c) * dropout.factor(r, c) * curve(kind, element(x, r, c)).slope;
  });
}
inline void dropout(Rows x, const Dropout& dropout, Rows y) {
  fill_elements(y, [&](int64_t r, int64_t c) { return element(x, r, c) * dropout.factor(r, c); });
}

}  // namespace definition

struct ActivationKernels {
  void (*activation)(Activation, Rows x, const Dropout&, Rows y);  ///< y = dropout(act(x))
  /// dx = act'(x) * mask(dy)
  void (*activation_backward)(Activation, Rows x, Rows dy, const Dropout&, Rows dx);
  void (*dropout)(Rows x, const Dropout&, Rows y);  ///< also its own backward

  static ActivationKernels of_cpu();
  static void list(const auto& visit) {
    HEDDLE_LIST_KERNEL(ActivationKernels, activation);
    HEDDLE_LIST_KERNEL(ActivationKernels, activation_backward);
    HEDDLE_LIST_KERNEL(ActivationKernels, dropout);
  }
};

}  // namespace heddle
