// Cutting a batch of images into blocks.
#include "heddle/ops/images/image_blocks.h"

#include "heddle/ops/images/patches.h"

namespace heddle {

std::vector<ImageBlock> image_blocks(std::span<const ImageSize> sizes, const WindowOptions& windows,
                                     const BlockBytes& bytes) {
  std::vector<ImageBlock> blocks = {{}};
  for (const ImageSize& size : sizes) {
    const ImageSize out = output_size(size, windows);
    const int64_t outputs = out.height * out.width;
    const int64_t tiles = (out.height + 1) / 2 * ((out.width + 1) / 2);
    const ImageBlock& last = blocks.back();
    const int64_t grown =
        (last.outputs + outputs) * bytes.of_output + (last.tiles + tiles) * bytes.of_tile;
    if (last.images > 0 && grown > bytes.most) {
      blocks.push_back({.image = last.image + last.images,
                        .pixel = last.pixel + last.pixels,
                        .output = last.output + last.outputs});
    }
    ImageBlock& block = blocks.back();
    block.images += 1, block.tiles += tiles, block.outputs += outputs;
    block.pixels += size.height * size.width;
  }
  return blocks;
}

}  // namespace heddle
