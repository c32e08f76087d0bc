// Kernels of activations and dropout.
#pragma once

#include "heddle/kernels/dropout.h"
#include "heddle/kernels/work.h"

namespace heddle {

enum class Activation : uint8_t { none, relu, gelu, gelu_new, silu, tanh };

struct ActivationKernels {
  void (*activation)(Activation, Rows x, const Dropout&, Rows y);  ///< y = dropout(act(x))
  /// dx = act'(x) * mask(dy)
  void (*activation_backward)(Activation, Rows x, Rows dy, const Dropout&, Rows dx);
  void (*dropout)(Rows x, const Dropout&, Rows y);  ///< also its own backward

  /// visit.operator()<&pointer>(name) for each.
  template <class Visit>
  static void list(const Visit& visit) {
    visit.template operator()<&ActivationKernels::activation>("activation");
    visit.template operator()<&ActivationKernels::activation_backward>("activation_backward");
    visit.template operator()<&ActivationKernels::dropout>("dropout");
  }
};

namespace cpu {
ActivationKernels activation_kernels();
}

}  // namespace heddle
