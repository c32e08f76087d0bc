// Kernels of reductions over rows and columns, in a fixed order of sums.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "heddle/kernels/family.h"

namespace heddle {

/// What choosing tokens from rows of logits needs to know: the largest of each kBlock columns, so
/// that few of them have to be looked at, and sums of e^logit. Columns may come in parts that begin
/// at multiples of kSumBlock: nothing depends on how they are cut.
struct LogitScanArgs {
  static constexpr int64_t kBlock = 128, kSumBlock = 2048;
  Rows logits = {};
  float* maxima = nullptr;  ///< [rows, ceil(width / kBlock)]
  /// [rows, ceil(width / kSumBlock)] sums of e^(logit - largest of these), or, if they are not
  /// wanted, 0; NaN if a logit is NaN
  float* sums = nullptr;
  bool wants_sums = true;
  int64_t maxima_stride = 0, sums_stride = 0;  ///< from one row to the next
};

inline Work work_of(const LogitScanArgs& args) { return {bytes_of(args.logits), 0}; }
inline Work work_of(const float*, int64_t n) { return {n * 4, 0}; }  // sum_squares

namespace definition {

inline void sum_columns(Rows x, float* y) {
  for (int64_t c = 0; c < x.width; ++c) {
    double sum = 0;
    for (int64_t r = 0; r < x.rows; ++r) sum += element(x, r, c);
    y[c] = static_cast<float>(sum);
  }
}
inline void sum_rows(Rows x, float* y) {
  for (int64_t r = 0; r < x.rows; ++r) {
    double sum = 0;
    for (int64_t c = 0; c < x.width; ++c) sum += element(x, r, c);
    y[r] = static_cast<float>(sum);
  }
}
inline void segment_mean(Rows x, const int64_t* offsets, Rows y) {
  fill_elements(y, [&](int64_t s, int64_t c) {
    double sum = 0;
    for (int64_t r = offsets[s]; r < offsets[s + 1]; ++r) sum += element(x, r, c);
    return sum / static_cast<double>(offsets[s + 1] - offsets[s]);
  });
}
inline void segment_mean_backward(Rows dy, const int64_t* offsets, Rows dx) {
  for (int64_t s = 0; s < dy.rows; ++s) {
    const auto n = static_cast<double>(offsets[s + 1] - offsets[s]);
    for (int64_t r = offsets[s]; r < offsets[s + 1]; ++r) {
      for (int64_t c = 0; c < dy.width; ++c) set_element(dx, r, c, element(dy, s, c) / n);
    }
  }
}
inline double sum_squares(const float* x, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += static_cast<double>(x[i]) * x[i];
  return sum;
}
inline bool all_finite(Rows x) {
  for (int64_t r = 0; r < x.rows; ++r) {
    for (int64_t c = 0; c < x.width; ++c) {
      if (!std::isfinite(element(x, r, c))) return false;
    }
  }
  return true;
}
/// The largest of the columns [begin, end) of a row, and the sum of e^(x - largest), which is 0
/// where all are -inf.
inline std::pair<double, double> largest_and_sum(const Rows& x, int64_t r, int64_t begin,
                                                 int64_t end) {
  double largest = -std::numeric_limits<double>::infinity(), sum = 0;
  for (int64_t c = begin; c < end; ++c) largest = std::max(largest, element(x, r, c));
  const double shift = largest == -std::numeric_limits<double>::infinity() ? 0 : largest;
  for (int64_t c = begin; c < end; ++c) sum += std::exp(element(x, r, c) - shift);
  return {largest, sum};
}
inline void softmax(Rows x, Rows y) {
  for (int64_t r = 0; r < x.rows; ++r) {
    const auto [largest, sum] = largest_and_sum(x, r, 0, x.width);
    for (int64_t c = 0; c < x.width; ++c) {
      set_element(y, r, c, sum == 0 ? 0 : std::exp(element(x, r, c) - largest) / sum);
    }
  }
}
inline void softmax_backward(Rows y, Rows dy, Rows dx) {
  for (int64_t r = 0; r < y.rows; ++r) {
    double sum = 0;
    for (int64_t c = 0; c < y.width; ++c) sum += element(y, r, c) * element(dy, r, c);
    for (int64_t c = 0; c < y.width; ++c) {
      set_element(dx, r, c, element(y, r, c) * (element(dy, r, c) - sum));
    }
  }
}
inline void log_softmax(Rows x, Rows y) {
  for (int64_t r = 0; r < x.rows; ++r) {
    const auto [largest, sum] = largest_and_sum(x, r, 0, x.width);
    for (int64_t c = 0; c < x.width; ++c) {
      set_element(y, r, c, element(x, r, c) - largest - std::log(sum));
    }
  }
}
inline void scan_logits(const LogitScanArgs& a) {
  for (int64_t r = 0; r < a.logits.rows; ++r) {
    for (int64_t begin = 0; begin < a.logits.width; begin += a.kBlock) {
      const int64_t end = std::min(begin + a.kBlock, a.logits.width);
      a.maxima[r * a.maxima_stride + begin / a.kBlock] =
          static_cast<float>(largest_and_sum(a.logits, r, begin, end).first);
    }
    for (int64_t begin = 0; begin < a.logits.width; begin += a.kSumBlock) {
      const int64_t end = std::min(begin + a.kSumBlock, a.logits.width);
      const double sum = a.wants_sums ? largest_and_sum(a.logits, r, begin, end).second : 0;
      a.sums[r * a.sums_stride + begin / a.kSumBlock] = static_cast<float>(sum);
    }
  }
}

}  // namespace definition

struct ReduceKernels {
  void (*sum_columns)(Rows x, float* y);  ///< y[c] = sum over rows, chunks of 128 rows in order
  void (*sum_rows)(Rows x, float* y);     ///< y[r] = sum over columns
  /// y[s] = the mean of rows [offsets[s], offsets[s + 1]), at least one, summed in order.
  void (*segment_mean)(Rows x, const int64_t* offsets, Rows y);
  /// dx[r] = dy[s] / rows of the segment, of its rows.
  void (*segment_mean_backward)(Rows dy, const int64_t* offsets, Rows dx);
  /// Chunks of 16,384 summed in order, f64 between.
  double (*sum_squares)(const float* x, int64_t n);
  bool (*all_finite)(Rows x);
  void (*softmax)(Rows x, Rows y);
  void (*softmax_backward)(Rows y, Rows dy, Rows dx);
  void (*log_softmax)(Rows x, Rows y);  ///< y f32
  void (*scan_logits)(const LogitScanArgs&);

  static ReduceKernels of_cpu();
  static void list(const auto& visit) {
    HEDDLE_LIST_KERNEL(ReduceKernels, sum_columns);
    HEDDLE_LIST_KERNEL(ReduceKernels, sum_rows);
    HEDDLE_LIST_KERNEL(ReduceKernels, segment_mean);
    HEDDLE_LIST_KERNEL(ReduceKernels, segment_mean_backward);
    HEDDLE_LIST_KERNEL(ReduceKernels, sum_squares);
    HEDDLE_LIST_KERNEL(ReduceKernels, all_finite);
    HEDDLE_LIST_KERNEL(ReduceKernels, softmax);
    HEDDLE_LIST_KERNEL(ReduceKernels, softmax_backward);
    HEDDLE_LIST_KERNEL(ReduceKernels, log_softmax);
    HEDDLE_LIST_KERNEL(ReduceKernels, scan_logits);
  }
};

}  // namespace heddle
