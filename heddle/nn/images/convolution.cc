// A convolution: its parameters, and the form of the weight that a run multiplies with.
#include "heddle/nn/images/convolution.h"

namespace heddle::nn {

Convolution::Convolution(const Scope& s, const Options& o)
    : name_(s.prefix()), windows_{o.kernel, o.stride, o.padding} {
  const bool is_matrix = o.kernel == 1;
  weight_ = &(s / "weight")
                 .parameter({o.out, o.kernel * o.kernel * o.in}, o.init,
                            is_matrix ? Layout::as_is : Layout::channels_first,
                            {o.out, o.in, o.kernel, o.kernel});
  if (!o.of_pixels) weight_->between_hidden_states();
  if (o.bias) bias_ = &(s / "bias").parameter({o.out}, Init::zeros());
}

Tensor Convolution::operator()(const Tensor& x, std::span<const ImageSize> sizes,
                               const Run& run) const {
  const LayerName layer(name_);
  const Tensor bias = bias_ == nullptr ? Tensor() : bias_->in(DType::f32);
  if (is_recording() || run.recompute) {  // the same bits in both passes of a layer
    return convolution(x, sizes, weight_->in(run.compute), bias, windows_);
  }
  const DType held = run.int8 ? DType::f32 : run.compute;
  return convolution(x, sizes, weight_->in_or_master(held), bias, windows_,
                     {.constant_w = weight_->identity(held), .int8 = run.int8});
}

Tensor Convolution::by(const Tensor& weight, const Tensor& bias, const Tensor& x,
                       std::span<const ImageSize> sizes, const LinearOptions& options) const {
  const LayerName layer(name_);
  return convolution(x, sizes, weight, bias, windows_, options);
}

Tensor Convolution::by(const WinogradWeight& weight, const Tensor& x,
                       std::span<const ImageSize> sizes, const WinogradTail& tail) const {
  const LayerName layer(name_);
  return winograd_convolution(x, sizes, windows_.padding, weight, tail);
}

bool Convolution::suits_winograd(DType dtype) const {
  const Shape& shape = weight_->shape();
  const int64_t in = shape[1] / (windows_.kernel * windows_.kernel);
  return WinogradConvolution::suits(windows_, dtype, in, shape[0], false);
}

}  // namespace heddle::nn
