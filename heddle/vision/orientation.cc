// EXIF: a TIFF file in the first APP1 segment of that name of a JPEG file, or in a PNG file's chunk
// eXIf; of its first directory one entry counts.
#include "heddle/vision/orientation.h"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "heddle/base/files/files.h"

namespace heddle {
namespace {

using namespace std::string_view_literals;

// Numbers of a part of a file; what lies beyond its end is 0.
struct Numbers {
  std::string_view bytes;
  bool is_little_endian = false;

  uint32_t at(size_t place, size_t count) const {
    uint32_t number = 0;
    for (size_t i = 0; i < count; ++i) {
      const size_t from = place + (is_little_endian ? count - 1 - i : i);
      number = number << 8 | (from < bytes.size() ? static_cast<uint8_t>(bytes[from]) : 0U);
    }
    return number;
  }
};

// Behind "Exif": nothing if there is no such segment before the pixels.
std::string_view exif_segment(std::string_view file) {
  constexpr std::string_view kName = "Exif\0\0"sv;
  constexpr uint32_t kApp1 = 0xe1, kScan = 0xda;
  const Numbers numbers{file};
  for (size_t at = 2; at + 4 <= file.size();) {
    const uint32_t marker = numbers.at(at + 1, 1);
    // Bytes that fill up before a marker, and what is none.
    if (numbers.at(at, 1) != 0xff || marker == 0xff || marker == 0) {
      ++at;
      continue;
    }
    if (marker == kScan) return {};
    const bool stands_alone = marker == 0x01 || (marker >= 0xd0 && marker <= 0xd7);
    const std::string_view content = file.substr(at + 4, std::max(2U, numbers.at(at + 2, 2)) - 2);
    if (marker == kApp1 && content.starts_with(kName)) return content.substr(kName.size());
    at += 2 + (stands_alone ? 0 : content.size() + 2);
  }
  return {};
}

// Nothing if there is no such chunk.
std::string_view exif_chunk(std::string_view file) {
  const Numbers numbers{file};
  for (size_t at = 8; at + 12 <= file.size();) {  // length, name, content, checksum
    const size_t length = numbers.at(at, 4);
    if (file.substr(at + 4, 4) == "eXIf") return file.substr(at + 8, length);
    at += 12 + length;
  }
  return {};
}

std::string_view exif_data(std::string_view file) {
  const auto bytes = std::as_bytes(std::span(file));
  if (is_jpeg(bytes)) return exif_segment(file);
  return is_png(bytes) ? exif_chunk(file) : std::string_view();
}

}  // namespace

int exif_orientation(std::span<const std::byte> file) {
  constexpr uint32_t kOrientation = 0x112, kShort = 3, kLong = 4;
  Numbers tiff{exif_data({reinterpret_cast<const char*>(file.data()), file.size()})};
  tiff.is_little_endian = tiff.bytes.starts_with("II*\0"sv);
  if (!tiff.is_little_endian && !tiff.bytes.starts_with("MM\0*"sv)) return 1;
  const size_t directory = tiff.at(4, 4);
  for (size_t i = 0; i < tiff.at(directory, 2); ++i) {
    const size_t entry = directory + 2 + 12 * i;  // tag, type, how many, and here the value
    if (entry + 12 > tiff.bytes.size()) return 1;
    if (tiff.at(entry, 2) != kOrientation) continue;
    const uint32_t type = tiff.at(entry + 2, 2), count = tiff.at(entry + 4, 4);
    const uint32_t value = tiff.at(entry + 8, type == kShort ? 2 : 4);
    const bool is_number = count == 1 && (type == kShort || type == kLong);
    return is_number && value >= 1 && value <= 8 ? static_cast<int>(value) : 1;
  }
  return 1;
}

ImageSize turned(ImageSize image, int orientation) {
  const bool is_swapped = orientation >= 5 && orientation <= 8;
  return is_swapped ? ImageSize{image.width, image.height} : image;
}

Image turned(Image image, int orientation) {
  if (orientation < 2 || orientation > 8) return image;
  const bool is_swapped = orientation >= 5;  // rows become columns
  const bool from_below =
      orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
  const bool from_right = orientation == 2 || orientation == 3 || orientation >= 7;
  const ImageSize size = turned(image.size(), orientation);
  Image to(size.height, size.width);
  for (int64_t y = 0; y < to.height; ++y) {
    uint8_t* pixel = to.row(y);
    for (int64_t x = 0; x < to.width; ++x, pixel += Image::kChannels) {
      int64_t row = is_swapped ? x : y, column = is_swapped ? y : x;
      if (from_below) row = image.height - 1 - row;
      if (from_right) column = image.width - 1 - column;
      std::memcpy(pixel, image.row(row) + column * Image::kChannels, Image::kChannels);
    }
  }
  return to;
}

Image upright_image(std::span<const std::byte> file, const std::string& name) {
  return turned(decode_image(file, name), exif_orientation(file));
}

Image read_upright_image(const std::string& path) {
  const std::string file = read_file(path);
  return upright_image(std::as_bytes(std::span(file)), path);
}

}  // namespace heddle
