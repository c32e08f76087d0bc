// Images in memory, and the files that they come from.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "heddle/tensor/image_size.h"

namespace heddle {

using Rgb = std::array<uint8_t, 3>;

/// A part of an image, in pixels; it may reach beyond.
struct PixelBox {
  int64_t top = 0, left = 0, height = 0, width = 0;
};

/// An image of 8 bits a channel.
struct Image {
  static constexpr int64_t kChannels = 3;  ///< red, green, blue
  int64_t height = 0, width = 0;
  std::vector<uint8_t> pixels;  ///< [height, width, 3]

  Image() = default;
  Image(int64_t rows, int64_t columns)
      : height(rows),
        width(columns),
        pixels(static_cast<size_t>(rows) * static_cast<size_t>(columns) * kChannels) {}

  ImageSize size() const { return {height, width}; }
  int64_t row_bytes() const { return width * kChannels; }
  const uint8_t* row(int64_t y) const { return pixels.data() + y * row_bytes(); }
  uint8_t* row(int64_t y) { return pixels.data() + y * row_bytes(); }
  bool operator==(const Image& other) const = default;
};

/// An image may have so many pixels, told by its header before any memory is taken (where Pillow
/// refuses).
inline constexpr int64_t kMostPixels = 178'956'970;

/// A JPEG or PNG file as red, green and blue, to the bit what Pillow's convert("RGB") gives: grey
/// is repeated, a palette looked up, transparency dropped, CMYK multiplied out; of 16 bits the
/// upper 8 count (in grey too, where Pillow cuts all above 255 off at 255). The orientation in a
/// camera's EXIF data is not looked at. JPEG: the integer inverse transform and smooth upsampling
/// of libjpeg-turbo. Errors, with `name` in front: data for bytes of another kind, a file that is
/// cut short or damaged, more than kMostPixels pixels, an animation, a JPEG file of more than 100
/// scans.
Image decode_image(std::span<const std::byte> bytes, const std::string& name);
/// The same of a file. Errors: those of read_file() too.
Image read_image(const std::string& path);

/// A PNG file of 8 bits a channel, which decode_png() gives back to the bit. Errors: usage for one
/// without a pixel.
std::string encode_png(const Image& image);

// The two formats, each read by its library.
bool is_jpeg(std::span<const std::byte> bytes);
bool is_png(std::span<const std::byte> bytes);
/// What decode_image() does with a file of the kind.
Image decode_jpeg(std::span<const std::byte> bytes, const std::string& name);
Image decode_png(std::span<const std::byte> bytes, const std::string& name);

/// The image's memory. Errors: data, with `name` in front, for no pixel or more than kMostPixels.
Image image_of_size(uint64_t height, uint64_t width, const std::string& name);

}  // namespace heddle
