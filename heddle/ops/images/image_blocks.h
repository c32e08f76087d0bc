// A batch of images in blocks, so that what is made of a block's pixels stays in a cache.
#pragma once

#include <span>
#include <vector>

#include "heddle/kernels/patches.h"

namespace heddle {

/// Some images of a batch, one after the other.
struct ImageBlock {
  int64_t image = 0, images = 0;    ///< from this one on, so many
  int64_t pixel = 0, pixels = 0;    ///< rows of the input
  int64_t output = 0, outputs = 0;  ///< rows of the output: windows
  int64_t tiles = 0;                ///< of 2 x 2 outputs, see kernels/winograd.h
};

/// What a block's memory is counted by.
struct BlockBytes {
  int64_t of_output = 0, of_tile = 0;
  int64_t most = 0;  ///< of a block of several images
};

/// As many images a block as have `most` bytes, at least one. One empty block of no images.
/// Errors: those of output_size().
std::vector<ImageBlock> image_blocks(std::span<const ImageSize> sizes, const WindowOptions& windows,
                                     const BlockBytes& bytes);

}  // namespace heddle
