// Windows over images of one size as the rows of a product.
#include "heddle/ops/images/direct_convolution.h"

#include <cstring>

#include "heddle/kernels/kernels.h"

namespace heddle {
namespace {

// A weight whose windows' lines are filled up with zeros to `line` elements.
Tensor with_filled_lines(const Tensor& w, int64_t lines, int64_t line) {
  const int64_t width = w.size(1) / lines;
  if (width == line) return w;
  const Tensor filled = Tensor::zeros({w.size(0), lines * line}, w.dtype());
  for (int64_t i = 0; i < w.size(0) * lines; ++i) {
    const int64_t row = i / lines, first = i % lines;
    std::memcpy(filled.rows().slice(row, 1).columns(first * line, width).data,
                w.rows().slice(row, 1).columns(first * width, width).data,
                static_cast<size_t>(width * size_of(w.dtype())));
  }
  return filled;
}

}  // namespace

bool convolves_directly(const WindowOptions& windows, DType dtype, const LinearOptions& options) {
  const bool has_simple_tail =
      options.activation == Activation::none || options.activation == Activation::relu;
  return takes_windows(dtype) && !options.int8 && has_simple_tail && options.first == 0 &&
         options.count < 0 && options.result.value_or(dtype) == dtype &&
         windows.padding < windows.kernel &&
         (windows.stride < windows.kernel || windows.kernel == 1);
}

void direct_convolution(const Tensor& x, std::span<const ImageSize> sizes, const Tensor& w,
                        const Tensor& bias, const WindowOptions& windows,
                        const LinearOptions& options, const Tensor& y) {
  GemmWindows of{.channels = x.size(1), .options = windows};
  const Tensor filled = with_filled_lines(w, windows.kernel, of.line());
  int64_t pixel = 0, output = 0;
  for (size_t i = 0; i < sizes.size(); i += static_cast<size_t>(of.images)) {
    of.size = sizes[i], of.images = 1;
    while (i + static_cast<size_t>(of.images) < sizes.size() &&
           sizes[i + static_cast<size_t>(of.images)] == of.size) {
      ++of.images;
    }
    const int64_t pixels = of.images * of.size.height * of.size.width;
    const int64_t outputs = of.images * of.outputs().height * of.outputs().width;
    kernels().gemm(
        {.a = x.rows().slice(pixel, pixels),
         .b = filled.rows(),
         .c = y.rows().slice(output, outputs),
         .bias = bias.defined() ? bias.data<float>() : nullptr,
         .transpose_b = true,
         .constant_b = options.constant_w,
         .added = options.added.defined() ? options.added.rows().slice(output, outputs) : Rows(),
         .activation = options.activation,
         .windows = &of});
    pixel += pixels, output += outputs;
  }
}

}  // namespace heddle
