// Convolutions of 3 x 3 windows with fewer multiplications, for training in bf16. What
// convolution() computes, with the rounding of sums of four inputs to bf16 more.
#pragma once

#include "heddle/ops/images/patches.h"

namespace heddle {

class WinogradConvolution {
 public:
  /// Whether a convolution from `in` to `out` channels is one of these here, and pays.
  static bool suits(const WindowOptions& windows, DType dtype, int64_t in, int64_t out);

  /// Of images of these sizes.
  WinogradConvolution(std::span<const ImageSize> sizes, int64_t padding);

  /// x: [pixels, in], w: [out, 9 * in], bf16; bias: [out] f32 or undefined    returns: [pixels of
  /// all outputs, out], after ReLU if that is asked for
  Tensor product(const Tensor& x, const Tensor& w, const Tensor& bias, bool relu) const;
  /// Of x (undefined unless it is wanted) and of w (f32) for dy, that of the product.
  std::pair<Tensor, Tensor> gradients(const Tensor& x, const Tensor& w, const Tensor& dy,
                                      bool wants_dx) const;

 private:
  std::vector<ImageSize> sizes_, outputs_;
  int64_t padding_;
};

}  // namespace heddle
