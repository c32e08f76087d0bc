// Kernels of an optimizer's step.
#pragma once

#include <cmath>

#include "heddle/kernels/family.h"

namespace heddle {

/// One step of Adam or AdamW over n elements. g is multiplied by grad_scale first (clipping,
/// division by tokens). m = b1 m + (1-b1) g; v = b2 v + (1-b2) g^2;
/// w -= lr * (m / (1 - b1^t)) / (sqrt(v / (1 - b2^t)) + eps) + lr * weight_decay * w (AdamW), or
/// g += weight_decay * w first (Adam).
struct AdamArgs {
  float* w = nullptr;
  const float* g = nullptr;
  float* m = nullptr;
  float* v = nullptr;
  bf16* shadow = nullptr;  ///< bf16 copy of w; may be null
  float* ema = nullptr;    ///< exponential moving average of w; may be null
  int64_t n = 0;
  float lr = 0, beta1 = 0.9f, beta2 = 0.999f, eps = 1e-8f, weight_decay = 0;
  float bias_correction1 = 1, bias_correction2 = 1;  ///< 1 - beta^t
  float grad_scale = 1;
  float ema_decay = 0;
  bool decoupled_decay = false;  ///< AdamW
};

/// One step of SGD over n elements. g is multiplied by grad_scale first and has weight_decay * w
/// added unless decay is decoupled; v = momentum v + g; w -= lr * (v, or, of Nesterov, g + momentum
/// v) + lr * weight_decay * w (decoupled). As torch has it.
struct SgdArgs {
  float* w = nullptr;
  const float* g = nullptr;
  float* v = nullptr;      ///< velocity
  bf16* shadow = nullptr;  ///< as in AdamArgs, like ema
  float* ema = nullptr;
  int64_t n = 0;
  float lr = 0, momentum = 0.9f, weight_decay = 0;
  float grad_scale = 1;
  float ema_decay = 0;
  bool nesterov = true;
  bool decoupled_decay = false;
};

inline Work work_of(const SgdArgs& args) {
  const int64_t floats = 5 + (args.ema != nullptr ? 2 : 0);  // w, v twice, g once
  return {args.n * (4 * floats + (args.shadow != nullptr ? 2 : 0)), 0};
}
inline Work work_of(const AdamArgs& args) {
  const int64_t floats = 7 + (args.ema != nullptr ? 2 : 0);  // w, m, v twice, g once
  return {args.n * (4 * floats + (args.shadow != nullptr ? 2 : 0)), 0};
}

namespace definition {

inline void adam(const AdamArgs& a) {
  for (int64_t i = 0; i < a.n; ++i) {
    const double w = a.w[i];
    const double g = a.g[i] * a.grad_scale + (a.decoupled_decay ? 0 : a.weight_decay * w);
    const double m = a.beta1 * a.m[i] + (1 - a.beta1) * g;
    const double v = a.beta2 * a.v[i] + (1 - a.beta2) * g * g;
    const double step = m / a.bias_correction1 / (std::sqrt(v / a.bias_correction2) + a.eps);
    const double next = w - a.lr * (step + (a.decoupled_decay ? a.weight_decay * w : 0));
    a.m[i] = static_cast<float>(m), a.v[i] = static_cast<float>(v);
    a.w[i] = static_cast<float>(next);
    if (a.shadow) a.shadow[i] = bf16(a.w[i]);
    if (a.ema) {
      a.ema[i] = static_cast<float>(a.ema_decay * a.ema[i] + (1 - a.ema_decay) * next);
    }
  }
}

inline void sgd(const SgdArgs& a) {
  for (int64_t i = 0; i < a.n; ++i) {
    const double w = a.w[i];
    const double g = a.g[i] * a.grad_scale + (a.decoupled_decay ? 0 : a.weight_decay * w);
    const double v = a.momentum * a.v[i] + g;
    const double step = a.nesterov ? g + a.momentum * v : v;
    const double next = w - a.lr * (step + (a.decoupled_decay ? a.weight_decay * w : 0));
    a.v[i] = static_cast<float>(v), a.w[i] = static_cast<float>(next);
    if (a.shadow) a.shadow[i] = bf16(a.w[i]);
    if (a.ema) {
      a.ema[i] = static_cast<float>(a.ema_decay * a.ema[i] + (1 - a.ema_decay) * next);
    }
  }
}

}  // namespace definition

struct OptimizerKernels {
  void (*adam)(const AdamArgs&);
  void (*sgd)(const SgdArgs&);

  static OptimizerKernels of_cpu();
  static void list(const auto& visit) {
    HEDDLE_LIST_KERNEL(OptimizerKernels, adam);
    HEDDLE_LIST_KERNEL(OptimizerKernels, sgd);
  }
};

}  // namespace heddle
