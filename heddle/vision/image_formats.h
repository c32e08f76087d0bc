// The two formats of image files that are read, each by its library.
#pragma once

#include "heddle/vision/image.h"

namespace heddle {

bool is_jpeg(std::span<const std::byte> bytes);
bool is_png(std::span<const std::byte> bytes);
/// What decode_image() does with a file of the kind.
Image decode_jpeg(std::span<const std::byte> bytes, const std::string& name);
Image decode_png(std::span<const std::byte> bytes, const std::string& name);

/// The image's memory. Errors: data, with `name` in front, for no pixel or more than kMostPixels.
Image image_of_size(uint64_t height, uint64_t width, const std::string& name);

}  // namespace heddle
