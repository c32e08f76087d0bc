// Kernels of layer norm and of what is added before it.
#pragma once

#include "heddle/kernels/dropout.h"
#include "heddle/kernels/work.h"

namespace heddle {

/// h = x + dropout(sub); y = (h - mean) / sqrt(var + eps) * gamma + beta, biased variance, two
/// passes. sub, x (then h = dropout(sub)), and h may be absent (data null); h may alias x or sub.
struct NormArgs {
  Rows x = {};
  Rows sub = {};
  Dropout dropout = {};
  Rows h = {};
  Rows y = {};
  const float* gamma = nullptr;  ///< [width]
  const float* beta = nullptr;   ///< [width]
  float eps = 1e-5f;
  float* mean = nullptr;  ///< [rows], kept for the backward pass; may be null
  float* rstd = nullptr;  ///< [rows], 1 / sqrt(var + eps); may be null
};

/// dh = gradient through the norm + dh_in (if given); dsub = dh * dropout mask.
/// dgamma, dbeta: [width], written (not added to), summed in fixed chunks of rows.
struct NormBackwardArgs {
  Rows h = {};
  Rows dy = {};
  Rows dh_in = {};  ///< gradient that reaches h by the residual path; may be absent
  Rows dh = {};     ///< may alias dh_in
  Rows dsub = {};   ///< may be absent
  Dropout dropout = {};
  const float* gamma = nullptr;
  const float* mean = nullptr;
  const float* rstd = nullptr;
  float* dgamma = nullptr;
  float* dbeta = nullptr;
};

inline Work work_of(const NormArgs& args) {
  return {bytes_of(args.x) + bytes_of(args.sub) + bytes_of(args.h) + bytes_of(args.y), 0};
}

inline Work work_of(const NormBackwardArgs& args) {
  return {bytes_of(args.h) + bytes_of(args.dy) + bytes_of(args.dh_in) + bytes_of(args.dh) +
              bytes_of(args.dsub),
          0};
}

struct NormKernels {
  void (*norm)(const NormArgs&);
  void (*norm_backward)(const NormBackwardArgs&);

  /// visit.operator()<&pointer>(name) for each.
  template <class Visit>
  static void list(const Visit& visit) {
    visit.template operator()<&NormKernels::norm>("norm");
    visit.template operator()<&NormKernels::norm_backward>("norm_backward");
  }
};

namespace cpu {
NormKernels norm_kernels();
}

}  // namespace heddle
