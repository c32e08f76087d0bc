// Images of a batch, as models take them.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "heddle/ops/dropout.h"
#include "heddle/tensor/image_size.h"
#include "heddle/tensor/segments.h"

namespace heddle::nn {

/// Images of any sizes, their pixels end to end without padding, each row by row, channels last.
struct ImageRows {
  static constexpr const char* kName = "images";

  Tensor x = {};                                 ///< [pixels of all, channels], f32 or bf16
  const Segments* segments = nullptr;            ///< the pixels of each image
  std::shared_ptr<const RowIds> rows = nullptr;  ///< nothing is dropped of pixels
  const std::vector<ImageSize>* sizes = nullptr;
  /// Numbers of the images in the data, for dropout; may be null if nothing is dropped.
  const std::vector<uint32_t>* samples = nullptr;

  /// Errors: shape if there are not as many pixels as the sizes say, or not `channels` of each.
  void check(int64_t channels) const;
};

/// The pixels (or windows) of each image.
Segments image_segments(std::span<const ImageSize> sizes);

/// For dropout over rows that images are made into: each image's number, and the position of the
/// row in its image; null if there are no numbers.
std::shared_ptr<const RowIds> row_ids(const std::vector<uint32_t>* samples, const Segments& rows);

}  // namespace heddle::nn
