// Convolutions over images that lie end to end.
#pragma once

#include "heddle/nn/layers.h"
#include "heddle/ops/images/winograd.h"

namespace heddle::nn {

/// y = W * x + b over square windows: weight named "weight", in checkpoints [out, in,
/// kernel, kernel], in memory [out, kernel * kernel * in]; bias [out] named "bias".
class Convolution {
 public:
  struct Options {
    int64_t in = 0;  ///< channels
    int64_t out = 0;
    int64_t kernel = 1, stride = 1, padding = 0;
    bool bias = true;
    bool of_pixels = false;  ///< its inputs are an image's pixels, no hidden states
    Init init = Init::xavier_uniform();
  };
  Convolution(const Scope& s, const Options& o);

  /// x: [pixels of all images, in]    returns: [pixels of output_sizes(sizes), out]
  /// Errors: shape if sizes do not fit, or an image holds no window.
  Tensor operator()(const Tensor& x, std::span<const ImageSize> sizes, const Run& run) const;
  /// The same windows by another weight and bias.
  Tensor by(const Tensor& weight, const Tensor& bias, const Tensor& x,
            std::span<const ImageSize> sizes, const LinearOptions& options) const;
  /// The same of a weight in Winograd's form, where that suits; see winograd_convolution().
  Tensor by(const WinogradWeight& weight, const Tensor& x, std::span<const ImageSize> sizes,
            const WinogradTail& tail) const;
  /// Whether that is faster, where nothing is trained.
  bool suits_winograd(DType dtype) const;
  Parameter& weight() const { return *weight_; }
  ImageSize output_size(const ImageSize& size) const { return heddle::output_size(size, windows_); }
  std::vector<ImageSize> output_sizes(std::span<const ImageSize> sizes) const {
    return heddle::output_sizes(sizes, windows_);
  }

 private:
  std::string name_;
  WindowOptions windows_;
  Parameter* weight_;
  Parameter* bias_ = nullptr;
};

}  // namespace heddle::nn
