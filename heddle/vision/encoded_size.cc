// PNG: the first chunk. JPEG: segments up to the one that begins a frame.
#include "heddle/vision/encoded_size.h"

#include "heddle/vision/image.h"

namespace heddle {
namespace {

using Bytes = std::span<const std::byte>;

// Big-endian.
int64_t number_at(Bytes bytes, size_t at, size_t count) {
  int64_t number = 0;
  for (size_t i = 0; i < count; ++i) number = number << 8 | std::to_integer<int64_t>(bytes[at + i]);
  return number;
}

std::optional<ImageSize> png_size(Bytes bytes) {
  if (bytes.size() < 24) return {};
  return ImageSize{number_at(bytes, 20, 4), number_at(bytes, 16, 4)};
}

// SOF0 to SOF15, of which three numbers are other segments.
bool begins_frame(int marker) {
  return marker >= 0xc0 && marker <= 0xcf && marker != 0xc4 && marker != 0xc8 && marker != 0xcc;
}
// TEM, RST0 to RST7: no length follows.
bool stands_alone(int marker) { return marker == 0x01 || (marker >= 0xd0 && marker <= 0xd7); }

std::optional<ImageSize> jpeg_size(Bytes bytes) {
  for (size_t at = 2; at + 1 < bytes.size();) {
    const int marker = std::to_integer<int>(bytes[at + 1]);
    // What is no marker is passed over, and so are bytes that fill up before one.
    if (bytes[at] != std::byte{0xff} || marker == 0xff || marker == 0) {
      ++at;
      continue;
    }
    at += 2;
    if (stands_alone(marker)) continue;
    if (at + 2 > bytes.size()) return {};
    if (begins_frame(marker)) {
      if (at + 7 > bytes.size()) return {};
      return ImageSize{number_at(bytes, at + 3, 2), number_at(bytes, at + 5, 2)};
    }
    at += static_cast<size_t>(number_at(bytes, at, 2));
  }
  return {};
}

}  // namespace

std::optional<ImageSize> encoded_size(Bytes bytes) {
  if (is_png(bytes)) return png_size(bytes);
  if (is_jpeg(bytes)) return jpeg_size(bytes);
  return {};
}

}  // namespace heddle
