// The size of an image whose file was not decoded.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "heddle/tensor/image_size.h"

namespace heddle {

/// Height and width that the header of a JPEG or PNG file says, as decode_image() will have them;
/// nothing for bytes of another kind, or a file that ends before. Reads headers alone, and takes no
/// memory. Source: ITU T.81, B.1.1 (markers); W3C PNG, 11.2.2 (IHDR).
std::optional<ImageSize> encoded_size(std::span<const std::byte> bytes);

}  // namespace heddle
