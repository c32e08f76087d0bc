// Which kind of file it is.
#include "heddle/vision/image.h"

#include "heddle/base/error.h"
#include "heddle/base/files/files.h"

namespace heddle {
namespace {

// The kind that the first bytes tell, of files that people take for images.
const char* other_kind(std::string_view begin) {
  if (begin.empty()) return "an empty file";
  if (begin.starts_with("GIF8")) return "a GIF file";
  if (begin.starts_with("RIFF") && begin.substr(8).starts_with("WEBP")) return "a WebP file";
  if (begin.starts_with("BM")) return "a BMP file";
  if (begin.starts_with("II*") || begin.starts_with("MM")) return "a TIFF file";
  if (begin.substr(4).starts_with("ftyp")) return "a HEIF or AVIF file, or a film";
  return "no image that heddle knows";
}

}  // namespace

Image image_of_size(uint64_t height, uint64_t width, const std::string& name) {
  check(height > 0 && width > 0 && width <= kMostPixels / height, ErrorKind::data,
        "{}: the header says {} x {} pixels (width x height); an image has one at least, and {} at "
        "most",
        name, width, height, kMostPixels);
  return Image(static_cast<int64_t>(height), static_cast<int64_t>(width));
}

Image decode_image(std::span<const std::byte> bytes, const std::string& name) {
  if (is_jpeg(bytes)) return decode_jpeg(bytes, name);
  if (is_png(bytes)) return decode_png(bytes, name);
  std::string begin(reinterpret_cast<const char*>(bytes.data()),
                    std::min<size_t>(bytes.size(), 16));
  if (!begin.empty()) begin.resize(16);
  fail(ErrorKind::data, "{} is {}; JPEG and PNG files are read", name, other_kind(begin));
}

Image read_image(const std::string& path) {
  const std::string file = read_file(path);
  return decode_image(std::as_bytes(std::span(file)), path);
}

}  // namespace heddle
