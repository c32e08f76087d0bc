// Kernels of matrix products.
#pragma once

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "heddle/kernels/activation.h"
#include "heddle/kernels/family.h"
#include "heddle/kernels/quantized.h"

namespace heddle {

/// c = op(a) op(b) (+ bias) or c += op(a) op(b); sums in f32, in an order that depends on the inner
/// size only: a row of c has the same bits whatever the number of rows or threads.
struct GemmArgs {
  Rows a = {};  ///< [m, k], or [k, m] if transpose_a
  Rows b = {};  ///< [k, n], or [n, k] if transpose_b; same dtype as a, or f32, which
                ///< counts as rounded to the dtype of a
  Rows c = {};  ///< [m, n], f32 or the dtype of a
  const float* bias = nullptr;  ///< [n], added to each row
  bool transpose_a = false;
  bool transpose_b = false;
  bool accumulate = false;  ///< add to c, which must be f32
  uint64_t constant_b = 0;  ///< not 0: identity of a b that does not change; from the second use on
                            ///< its packed form is kept
  int64_t first = 0;  ///< of the columns of the product that c holds, a multiple of 64: with a
                      ///< transposed constant b c may have some only
  Rows added = {};    ///< added to product and bias before the activation, of the dtype and size of
                      ///< c; may be absent; not with accumulate or pre_activation
  Activation activation = Activation::none;  ///< of product and bias; not with accumulate
  Rows pre_activation =
      {};  ///< product and bias before the activation, of the dtype of c; may be absent
  /// Multiply in int8: each row of a and each column of b is divided by its largest magnitude / 127
  /// and rounded; sums are exact. Needs a transposed constant b, of any dtype, and a plain a.
  bool int8 = false;
  /// Stands for b, transposed, if it is there: each group of a is divided by its largest magnitude
  /// / 127 and rounded; sums of a group are exact. Needs a plain a and a fresh c.
  QuantizedRows quantized_b = {};
};

inline Work work_of(const GemmArgs& args) {
  const int64_t inner = args.transpose_a ? args.a.rows : args.a.width;
  const int64_t b = args.quantized_b.values != nullptr ? args.quantized_b.bytes()
                    : args.int8                        ? args.b.rows * args.b.width
                                                       : bytes_of(args.b);
  return {
      bytes_of(args.a) + b + (args.accumulate ? 2 : 1) * bytes_of(args.c) + bytes_of(args.added),
      2.0 * static_cast<double>(args.c.rows) * static_cast<double>(args.c.width) *
          static_cast<double>(inner)};
}

namespace definition {

/// Divides a vector by its largest magnitude / 127, rounds, and returns that divisor.
inline double quantize(std::vector<double>& x) {
  double largest = 0;
  for (const double v : x) largest = std::max(largest, std::fabs(v));
  const float step = static_cast<float>(largest) / 127;
  for (double& v : x) v = step > 0 ? std::nearbyint(static_cast<float>(v) / step) : 0;
  return step;
}
/// Replaces each group of so many elements by what rounding leaves of it.
inline void round_groups(std::vector<double>& x, int64_t group) {
  for (auto begin = x.begin(); begin != x.end();) {
    const auto end = begin + std::min<int64_t>(group, x.end() - begin);
    std::vector<double> part(begin, end);
    const double step = quantize(part);
    for (const double q : part) *begin++ = q * step;
  }
}
inline void gemm(const GemmArgs& g) {
  const int64_t inner = g.transpose_a ? g.a.rows : g.a.width;
  const bool is_quantized = g.quantized_b.values != nullptr;
  std::vector<double> a(inner), b(inner);
  for (int64_t i = 0; i < g.c.rows; ++i) {
    for (int64_t j = 0; j < g.c.width; ++j) {
      for (int64_t l = 0; l < inner; ++l) {
        a[l] = g.transpose_a ? element(g.a, l, i) : element(g.a, i, l);
        b[l] = is_quantized    ? g.quantized_b.element(g.first + j, l)
               : g.transpose_b ? element(g.b, g.first + j, l)
                               : element(g.b, l, j);
        if (g.a.dtype == DType::bf16 && !g.int8 && !is_quantized) {
          b[l] = static_cast<float>(bf16(static_cast<float>(b[l])));
        }
      }
      if (is_quantized) round_groups(a, g.quantized_b.group);
      const double unit = g.int8 ? quantize(a) * quantize(b) : 1;
      double sum = std::inner_product(a.begin(), a.end(), b.begin(), 0.0) * unit;
      if (g.bias) sum += g.bias[j];
      if (g.accumulate) sum += element(g.c, i, j);
      if (g.added.data) sum += element(g.added, i, j);
      if (g.pre_activation.data) set_element(g.pre_activation, i, j, sum);
      set_element(g.c, i, j, curve(g.activation, sum).value);
    }
  }
}

}  // namespace definition

struct GemmKernels {
  void (*gemm)(const GemmArgs&);

  static GemmKernels of_cpu();
  static void list(const auto& visit) { HEDDLE_LIST_KERNEL(GemmKernels, gemm); }
};

/// A number for GemmArgs::constant_b that was not given before.
uint64_t new_constant();
/// Forgets the packed form kept for a constant b (see GemmArgs::constant_b).
void forget_packed(uint64_t constant_b);

}  // namespace heddle
