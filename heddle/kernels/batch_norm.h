// Kernels of batch norm: the mean and variance of each column over all rows, the norm with what is
// added behind it and ReLU, and their gradients.
#pragma once

#include <cmath>
#include <vector>

#include "heddle/kernels/family.h"

namespace heddle {

/// Mean and biased variance of each column: sums over chunks of rows that depend on the number of
/// rows only, chunks in order.
struct ColumnMomentsArgs {
  Rows x = {};
  float *mean = nullptr, *variance = nullptr;  ///< [width]
};

/// y = (x - mean) * rstd * gamma + beta (+ added), of which ReLU leaves what is above 0.
struct BatchNormArgs {
  Rows x = {};
  Rows added = {};  ///< may be absent
  Rows y = {};
  const float *mean = nullptr, *rstd = nullptr;   ///< [width]; rstd = 1 / sqrt(variance + eps)
  const float *gamma = nullptr, *beta = nullptr;  ///< [width]
  bool relu = false;
};

/// g = dy where ReLU was open; dadded = g; dgamma, dbeta: [width], written, in the chunks of
/// ColumnMomentsArgs; dx = gradient through the norm and, unless the statistics are fixed, through
/// mean and variance.
struct BatchNormBackwardArgs {
  BatchNormArgs forward = {};  ///< y is read only where something was added before ReLU
  Rows dy = {};
  Rows dx = {};
  Rows dadded = {};  ///< there if something was added
  float *dgamma = nullptr, *dbeta = nullptr;
  bool is_fixed = false;  ///< mean and variance are not those of x
};

inline Work work_of(const ColumnMomentsArgs& a) { return work_of(a.x); }
inline Work work_of(const BatchNormArgs& a) { return work_of(a.x, a.added, a.y); }
inline Work work_of(const BatchNormBackwardArgs& a) {
  const int64_t again = a.dadded.data == nullptr ? bytes_of(a.dy) : bytes_of(a.dadded);
  const int64_t mask = a.forward.relu && a.dadded.data != nullptr ? bytes_of(a.forward.y) : 0;
  return {2 * bytes_of(a.forward.x) + bytes_of(a.dy) + again + mask + bytes_of(a.dx) +
              bytes_of(a.dadded),
          0};
}

namespace definition {

inline void column_moments(const ColumnMomentsArgs& a) {
  const auto rows = static_cast<double>(a.x.rows);
  for (int64_t c = 0; c < a.x.width; ++c) {
    double sum = 0, squares = 0;
    for (int64_t r = 0; r < a.x.rows; ++r) sum += element(a.x, r, c);
    const double mean = sum / rows;
    for (int64_t r = 0; r < a.x.rows; ++r) {
      squares += (element(a.x, r, c) - mean) * (element(a.x, r, c) - mean);
    }
    a.mean[c] = static_cast<float>(mean), a.variance[c] = static_cast<float>(squares / rows);
  }
}
inline double batch_norm_at(const BatchNormArgs& a, int64_t r, int64_t c) {
  const double y = (element(a.x, r, c) - a.mean[c]) * a.rstd[c] * a.gamma[c] + a.beta[c];
  return y + (a.added.data ? element(a.added, r, c) : 0);
}
inline void batch_norm(const BatchNormArgs& a) {
  fill_elements(a.y, [&](int64_t r, int64_t c) {
    const double y = batch_norm_at(a, r, c);
    return a.relu && !(y > 0) && !std::isnan(y) ? 0 : y;
  });
}
inline void batch_norm_backward(const BatchNormBackwardArgs& b) {
  const BatchNormArgs& a = b.forward;
  const auto rows = static_cast<double>(a.x.rows);
  for (int64_t c = 0; c < a.x.width; ++c) {
    double of_g = 0, of_gn = 0;
    const auto g = [&](int64_t r) {
      const bool is_shut =
          a.relu && !((a.added.data ? element(a.y, r, c) : batch_norm_at(a, r, c)) > 0);
      return is_shut ? 0 : element(b.dy, r, c);
    };
    const auto n = [&](int64_t r) { return (element(a.x, r, c) - a.mean[c]) * a.rstd[c]; };
    for (int64_t r = 0; r < a.x.rows; ++r) of_g += g(r), of_gn += g(r) * n(r);
    for (int64_t r = 0; r < a.x.rows; ++r) {
      const double through = b.is_fixed ? 0 : (of_g + n(r) * of_gn) / rows;
      if (b.dadded.data) set_element(b.dadded, r, c, g(r));
      set_element(b.dx, r, c, a.gamma[c] * a.rstd[c] * (g(r) - through));
    }
    b.dgamma[c] = static_cast<float>(of_gn), b.dbeta[c] = static_cast<float>(of_g);
  }
}

}  // namespace definition

struct BatchNormKernels {
  void (*column_moments)(const ColumnMomentsArgs&);
  void (*batch_norm)(const BatchNormArgs&);
  void (*batch_norm_backward)(const BatchNormBackwardArgs&);

  static BatchNormKernels of_cpu();
  static void list(const auto& visit) {
    HEDDLE_LIST_KERNEL(BatchNormKernels, column_moments);
    HEDDLE_LIST_KERNEL(BatchNormKernels, batch_norm);
    HEDDLE_LIST_KERNEL(BatchNormKernels, batch_norm_backward);
  }
};

}  // namespace heddle
