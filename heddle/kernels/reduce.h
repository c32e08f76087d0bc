// Kernels of reductions over rows and columns, in a fixed order of sums.
#pragma once

#include "heddle/kernels/work.h"

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

struct ReduceKernels {
  void (*sum_columns)(Rows x, float* y);  ///< y[c] = sum over rows, chunks of 256 rows in order
  void (*sum_rows)(Rows x, float* y);     ///< y[r] = sum over columns
  /// Chunks of 16,384 summed in order, f64 between.
  double (*sum_squares)(const float* x, int64_t n);
  bool (*all_finite)(Rows x);
  void (*softmax)(Rows x, Rows y);
  void (*softmax_backward)(Rows y, Rows dy, Rows dx);
  void (*log_softmax)(Rows x, Rows y);  ///< y f32
  void (*scan_logits)(const LogitScanArgs&);

  /// visit.operator()<&pointer>(name) for each.
  template <class Visit>
  static void list(const Visit& visit) {
    visit.template operator()<&ReduceKernels::sum_columns>("sum_columns");
    visit.template operator()<&ReduceKernels::sum_rows>("sum_rows");
    visit.template operator()<&ReduceKernels::sum_squares>("sum_squares");
    visit.template operator()<&ReduceKernels::all_finite>("all_finite");
    visit.template operator()<&ReduceKernels::softmax>("softmax");
    visit.template operator()<&ReduceKernels::softmax_backward>("softmax_backward");
    visit.template operator()<&ReduceKernels::log_softmax>("log_softmax");
    visit.template operator()<&ReduceKernels::scan_logits>("scan_logits");
  }
};

namespace cpu {
ReduceKernels reduce_kernels();
}

}  // namespace heddle
