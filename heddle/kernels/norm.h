// Kernels of layer norm with what is added before it, and of group norm.
#pragma once

#include <cmath>
#include <vector>

#include "heddle/kernels/dropout.h"
#include "heddle/kernels/family.h"

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
  const float* beta = nullptr;   ///< [width]; null: RMS norm, its mean counts as 0 and is not kept
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

/// y = (x - mean) / sqrt(var + eps) * gamma + beta, mean and biased variance of a segment's rows
/// over a group of width / groups columns; two passes.
struct GroupNormArgs {
  Rows x = {};
  Rows y = {};
  const int64_t* offsets = nullptr;  ///< [segments + 1]
  int64_t segments = 0, groups = 1;
  const float *gamma = nullptr, *beta = nullptr;  ///< [width]
  float eps = 1e-5f;
  float *mean = nullptr, *rstd = nullptr;  ///< [segments, groups]
};

/// dgamma, dbeta: [width], written, segments and rows in order.
struct GroupNormBackwardArgs {
  GroupNormArgs forward = {};  ///< mean and rstd as computed; y is not read
  Rows dy = {};
  Rows dx = {};
  float *dgamma = nullptr, *dbeta = nullptr;
};

inline Work work_of(const GroupNormArgs& a) { return work_of(a.x, a.y); }
inline Work work_of(const GroupNormBackwardArgs& a) { return work_of(a.forward.x, a.dy, a.dx); }
inline Work work_of(const NormArgs& a) { return work_of(a.x, a.sub, a.h, a.y); }
inline Work work_of(const NormBackwardArgs& a) { return work_of(a.h, a.dy, a.dh_in, a.dh, a.dsub); }

namespace definition {

inline void norm(const NormArgs& a) {
  const auto width = static_cast<double>(a.y.width);
  std::vector<double> h(a.y.width);
  for (int64_t r = 0; r < a.y.rows; ++r) {
    double sum = 0, squares = 0;
    for (int64_t c = 0; c < a.y.width; ++c) {
      h[c] = a.x.data ? element(a.x, r, c) : 0;
      if (a.sub.data) h[c] += element(a.sub, r, c) * a.dropout.factor(r, c);
      if (a.h.data) {  // the backward pass sees h as it is kept
        set_element(a.h, r, c, h[c]);
        h[c] = element(a.h, r, c);
      }
      sum += h[c];
    }
    const double mean = a.beta ? sum / width : 0;
    for (const double v : h) squares += (v - mean) * (v - mean);
    const double rstd = 1 / std::sqrt(squares / width + a.eps);
    for (int64_t c = 0; c < a.y.width; ++c) {
      set_element(a.y, r, c, (h[c] - mean) * rstd * a.gamma[c] + (a.beta ? a.beta[c] : 0));
    }
    if (a.mean) a.mean[r] = static_cast<float>(mean);
    if (a.rstd) a.rstd[r] = static_cast<float>(rstd);
  }
}
inline void norm_backward(const NormBackwardArgs& a) {
  const int64_t width = a.h.width;
  std::vector<double> dgamma(width), dbeta(width), n(width), g(width);
  for (int64_t r = 0; r < a.h.rows; ++r) {
    double of_g = 0, of_gn = 0;
    for (int64_t c = 0; c < width; ++c) {
      const double dy = element(a.dy, r, c);
      n[c] = (element(a.h, r, c) - (a.mean ? a.mean[r] : 0)) * a.rstd[r];
      g[c] = dy * a.gamma[c];
      of_g += a.mean ? g[c] / static_cast<double>(width) : 0;
      of_gn += g[c] * n[c] / static_cast<double>(width);
      dgamma[c] += dy * n[c], dbeta[c] += dy;
    }
    for (int64_t c = 0; c < width; ++c) {
      const double in = a.dh_in.data ? element(a.dh_in, r, c) : 0;
      const double dh = a.rstd[r] * (g[c] - of_g - n[c] * of_gn) + in;
      set_element(a.dh, r, c, dh);
      if (a.dsub.data) set_element(a.dsub, r, c, dh * a.dropout.factor(r, c));
    }
  }
  for (int64_t c = 0; c < width; ++c) {
    a.dgamma[c] = static_cast<float>(dgamma[c]);
    if (a.dbeta) a.dbeta[c] = static_cast<float>(dbeta[c]);
  }
}
/// Calls f(segment * groups + group, elements, of) for each, where of(g) calls g(row, column) for
/// each element.
template <class F>
void for_groups(const GroupNormArgs& a, const F& f) {
  const int64_t width = a.x.width / a.groups;
  for (int64_t s = 0; s < a.segments; ++s) {
    for (int64_t group = 0; group < a.groups; ++group) {
      const auto of = [&](const auto& g) {
        for (int64_t r = a.offsets[s]; r < a.offsets[s + 1]; ++r) {
          for (int64_t c = group * width; c < (group + 1) * width; ++c) g(r, c);
        }
      };
      f(s * a.groups + group, static_cast<double>((a.offsets[s + 1] - a.offsets[s]) * width), of);
    }
  }
}
inline void group_norm(const GroupNormArgs& a) {
  for_groups(a, [&](int64_t at, double count, const auto& of) {
    double sum = 0, squares = 0;
    of([&](int64_t r, int64_t c) { sum += element(a.x, r, c); });
    const double mean = sum / count;
    of([&](int64_t r, int64_t c) {
      squares += (element(a.x, r, c) - mean) * (element(a.x, r, c) - mean);
    });
    const double rstd = 1 / std::sqrt(squares / count + a.eps);
    of([&](int64_t r, int64_t c) {
      set_element(a.y, r, c, (element(a.x, r, c) - mean) * rstd * a.gamma[c] + a.beta[c]);
    });
    a.mean[at] = static_cast<float>(mean), a.rstd[at] = static_cast<float>(rstd);
  });
}
inline void group_norm_backward(const GroupNormBackwardArgs& b) {
  const GroupNormArgs& a = b.forward;
  std::vector<double> dgamma(a.x.width), dbeta(a.x.width);
  for_groups(a, [&](int64_t at, double count, const auto& of) {
    const auto n = [&](int64_t r, int64_t c) {
      return (element(a.x, r, c) - a.mean[at]) * a.rstd[at];
    };
    double of_g = 0, of_gn = 0;
    of([&](int64_t r, int64_t c) {
      const double dy = element(b.dy, r, c);
      of_g += dy * a.gamma[c] / count;
      of_gn += dy * a.gamma[c] * n(r, c) / count;
      dgamma[c] += dy * n(r, c), dbeta[c] += dy;
    });
    of([&](int64_t r, int64_t c) {
      const double g = element(b.dy, r, c) * a.gamma[c];
      set_element(b.dx, r, c, a.rstd[at] * (g - of_g - n(r, c) * of_gn));
    });
  });
  for (int64_t c = 0; c < a.x.width; ++c) {
    b.dgamma[c] = static_cast<float>(dgamma[c]), b.dbeta[c] = static_cast<float>(dbeta[c]);
  }
}

}  // namespace definition

struct NormKernels {
  void (*norm)(const NormArgs&);
  void (*norm_backward)(const NormBackwardArgs&);
  void (*group_norm)(const GroupNormArgs&);
  void (*group_norm_backward)(const GroupNormBackwardArgs&);

  static NormKernels of_cpu();
  static void list(const auto& visit) {
    HEDDLE_LIST_KERNEL(NormKernels, norm);
    HEDDLE_LIST_KERNEL(NormKernels, norm_backward);
    HEDDLE_LIST_KERNEL(NormKernels, group_norm);
    HEDDLE_LIST_KERNEL(NormKernels, group_norm_backward);
  }
};

}  // namespace heddle
