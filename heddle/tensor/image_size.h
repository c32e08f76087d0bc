// The size of an image, as every layer counts it.
#pragma once

#include <cstdint>

namespace heddle {

/// In pixels, or in windows over pixels.
struct ImageSize {
  int64_t height = 0, width = 0;
  friend bool operator==(const ImageSize&, const ImageSize&) = default;
};

}  // namespace heddle
