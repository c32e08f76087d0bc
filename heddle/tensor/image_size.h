// Height and width of an image.
#pragma once

#include <cstdint>

namespace heddle {

/// In pixels.
struct ImageSize {
  int64_t height = 0, width = 0;
  bool operator==(const ImageSize& other) const = default;
};

}  // namespace heddle
