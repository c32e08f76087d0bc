// Self-attention among the pixels of each image, as convolutional networks have it.
#pragma once

#include <span>

#include "heddle/nn/attention.h"
#include "heddle/tensor/image_size.h"

namespace heddle::nn {

/// Queries, keys and values by 1x1 maps, over all pixels of an image or those of a window; another
/// map of what the heads give. Where pixels stand is not told: the convolutions around say it.
/// Names: query, key, value, output. Source: Wang et al. 2018, "Non-local Neural Networks";
/// windows in place of a convolution: Ramachandran et al. 2019, "Stand-Alone Self-Attention in
/// Vision Models", here without overlap.
class PixelAttention {
 public:
  struct Options {
    int64_t width = 0, heads = 1;
    int64_t window = 0;       ///< side of the windows; 0: all pixels of an image see each other
    bool is_shifted = false;  ///< windows begin half of one later
    Init output = Init::xavier_uniform();
    std::string observed = {};  ///< see SelfAttention::Options
  };
  PixelAttention(const Scope& s, const Options& o);

  /// x: [pixels of all images, width]    returns: the same shape. An image's rows do not depend on
  /// others.
  Tensor operator()(const Tensor& x, std::span<const ImageSize> sizes, const Run& run) const;

 private:
  std::string name_;
  int64_t window_, shift_;
  SelfAttention attention_;
};

}  // namespace heddle::nn
