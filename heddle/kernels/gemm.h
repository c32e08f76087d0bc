// Kernels of matrix products.
#pragma once

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "heddle/kernels/activation.h"
#include "heddle/kernels/family.h"
#include "heddle/kernels/patches.h"
#include "heddle/kernels/quantized.h"

namespace heddle {

/// Windows over the pixels of images of one size, as rows of a product: the lines of a window side
/// by side, each filled up.
struct GemmWindows {
  ImageSize size = {};  ///< of each image, in pixels
  int64_t images = 0, channels = 0;
  WindowOptions options = {};

  static constexpr int64_t kStep = 32;
  /// Elements of a line of a window: kernel * channels, filled up to a multiple of kStep.
  int64_t line() const { return (options.kernel * channels + kStep - 1) / kStep * kStep; }
  /// Windows of an image.
  ImageSize outputs() const { return {options.windows(size.height), options.windows(size.width)}; }
  /// Of all windows of one thickness: real multiplications for an output.
  int64_t inner() const { return options.kernel * options.kernel * channels; }
};

/// c = op(a) op(b) (+ bias) or c += op(a) op(b); sums in f32, in an order that follows from the
/// inner size (transpose_a: from all sizes): a row's bits depend on no other rows and no threads.
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
                      ///< c, or c itself; may be absent; not with accumulate or pre_activation
  Activation activation = Activation::none;  ///< of product and bias; not with accumulate
  Rows pre_activation =
      {};  ///< product and bias before the activation, of the dtype of c; may be absent
  /// Multiply in int8: each row of a and each column of b is divided by its largest magnitude / 127
  /// and rounded; sums are exact. Needs a transposed constant b, of any dtype, and a plain a.
  bool int8 = false;
  /// Stands for b, transposed, if it is there: each group of a is divided by its largest magnitude
  /// / 127 and rounded; sums of a group are exact. Needs a plain a and a fresh c.
  QuantizedRows quantized_b = {};
  /// Not null: a is pixels [pixels, channels], and these windows over them are multiplied, those of
  /// image after image the rows of c. b, transposed: [n, kernel * line()], zeros where a line is
  /// filled up. Only where takes_windows(); c of the dtype of a, fresh, the activation none or
  /// ReLU.
  const GemmWindows* windows = nullptr;
};

inline Work work_of(const GemmArgs& args) {
  const int64_t inner = args.windows != nullptr ? args.windows->inner()
                        : args.transpose_a      ? args.a.rows
                                                : args.a.width;
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
/// The rows that windows are: [windows, kernel * line()].
inline std::vector<double> window_rows(const Rows& pixels, const GemmWindows& w) {
  const std::vector<ImageSize> sizes(static_cast<size_t>(w.images), w.size);
  const WindowArgs args{
      .x = pixels, .sizes = sizes.data(), .images = w.images, .options = w.options};
  const int64_t inner = w.options.kernel * w.line(),
                windows = w.outputs().height * w.outputs().width;
  std::vector<double> rows(static_cast<size_t>(w.images * windows * inner));
  for_windows(args, [&](int64_t window, int64_t place, int64_t pixel) {
    double* const to = rows.data() + window * inner + place / w.options.kernel * w.line() +
                       place % w.options.kernel * w.channels;
    for (int64_t c = 0; c < w.channels && pixel >= 0; ++c) to[c] = element(pixels, pixel, c);
  });
  return rows;
}
inline void gemm(const GemmArgs& g) {
  const bool is_windows = g.windows != nullptr;
  const int64_t inner = is_windows ? g.b.width : g.transpose_a ? g.a.rows : g.a.width;
  const std::vector<double> windows =
      is_windows ? window_rows(g.a, *g.windows) : std::vector<double>();
  const bool is_quantized = g.quantized_b.values != nullptr;
  std::vector<double> a(inner), b(inner);
  for (int64_t i = 0; i < g.c.rows; ++i) {
    for (int64_t j = 0; j < g.c.width; ++j) {
      for (int64_t l = 0; l < inner; ++l) {
        a[l] = is_windows      ? windows[static_cast<size_t>(i * inner + l)]
               : g.transpose_a ? element(g.a, l, i)
                               : element(g.a, i, l);
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
/// Whether products of this dtype can have windows as rows of a.
bool takes_windows(DType dtype);
/// Forgets the packed form kept for a constant b (see GemmArgs::constant_b).
void forget_packed(uint64_t constant_b);

}  // namespace heddle
