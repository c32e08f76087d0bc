// A convolution and the norm behind it, which are one product where nothing is trained.
#pragma once

#include <memory>
#include <variant>

#include "heddle/nn/images/batch_norm.h"
#include "heddle/nn/images/convolution.h"

namespace heddle::nn {

/// Which norm stands behind convolutions.
struct NormKind {
  enum class Over : uint8_t { batch, frozen_batch, group } over = Over::batch;
  int64_t groups = 8;  ///< of group
  double eps = 1e-5;
};

/// activation(norm(convolution(x)) + added): the convolution without bias at `convolution`, the
/// norm at `normalization`. Without gradients a norm by running statistics is folded into weight
/// and bias (once for each change of them), and what is added goes in while the product lies in the
/// cache.
class NormedConvolution {
 public:
  NormedConvolution(const Scope& convolution, const Scope& normalization,
                    Convolution::Options options, const NormKind& kind);

  /// x: [pixels of all images, in]; tail.added: [pixels of output_sizes(sizes), out] or undefined
  /// returns: [pixels of output_sizes(sizes), out]
  Tensor operator()(const Tensor& x, std::span<const ImageSize> sizes, const NormTail& tail,
                    const Run& run) const;
  /// norm and activation apart: what a pool stands between. y: [pixels of sizes, out]
  Tensor convolve(const Tensor& x, std::span<const ImageSize> sizes, const Run& run) const {
    return convolution_(x, sizes, run);
  }
  Tensor normalize(const Tensor& y, std::span<const ImageSize> sizes, const NormTail& tail,
                   const Run& run) const;
  std::vector<ImageSize> output_sizes(std::span<const ImageSize> sizes) const {
    return convolution_.output_sizes(sizes);
  }

 private:
  struct Folded;
  Tensor by_folded(const Tensor& x, std::span<const ImageSize> sizes, const NormTail& tail,
                   const Run& run) const;

  Convolution convolution_;
  std::variant<BatchNorm, GroupNorm> norm_;
  std::shared_ptr<Folded> folded_;
};

}  // namespace heddle::nn
