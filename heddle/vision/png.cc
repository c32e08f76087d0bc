// PNG files, read and written by libpng.
#include <png.h>

#include <csetjmp>
#include <cstring>

#include "heddle/base/error.h"
#include "heddle/vision/image.h"

namespace heddle {
namespace {

// What is left to read, and what the library said when it gave up. Nothing with a destructor may
// lie between there and where it returns to.
struct Source {
  std::span<const std::byte> rest;
  char message[200] = {};
};

void on_error(png_structp png, png_const_charp message) {
  auto* source = static_cast<Source*>(png_get_error_ptr(png));
  std::strncpy(source->message, message, sizeof source->message - 1);
  png_longjmp(png, 1);
}

void on_warning(png_structp, png_const_charp) {}

void read_bytes(png_structp png, png_bytep to, size_t count) {
  auto* source = static_cast<Source*>(png_get_io_ptr(png));
  if (count > source->rest.size()) png_error(png, "the file ends too early");
  std::memcpy(to, source->rest.data(), count);
  source->rest = source->rest.subspan(count);
}

struct PngReader {
  png_structp png;
  png_infop info;
  explicit PngReader(Source& source)
      : png(png_create_read_struct(PNG_LIBPNG_VER_STRING, &source, on_error, on_warning)),
        info(png ? png_create_info_struct(png) : nullptr) {
    check(info != nullptr, ErrorKind::system, "png: there is no memory");
    png_set_read_fn(png, &source, read_bytes);
  }
  PngReader(const PngReader&) = delete;
  ~PngReader() { png_destroy_read_struct(&png, &info, nullptr); }
};

// Asks for 8 bits of red, green and blue whatever the file holds; the number of passes, or 0 if the
// library gave up.
int read_header(const PngReader& reader) {
  if (setjmp(png_jmpbuf(reader.png))) return 0;
  png_set_user_limits(reader.png, PNG_UINT_31_MAX, PNG_UINT_31_MAX);  // pixels are counted here
  png_read_info(reader.png, reader.info);
  png_set_strip_16(reader.png);
  png_set_palette_to_rgb(reader.png);
  png_set_expand_gray_1_2_4_to_8(reader.png);
  png_set_gray_to_rgb(reader.png);
  png_set_strip_alpha(reader.png);
  const int passes = png_set_interlace_handling(reader.png);
  png_read_update_info(reader.png, reader.info);
  return passes;
}

bool read_rows(const PngReader& reader, int passes, Image& image) {
  if (setjmp(png_jmpbuf(reader.png))) return false;
  for (int pass = 0; pass < passes; ++pass) {
    for (int64_t y = 0; y < image.height; ++y) png_read_row(reader.png, image.row(y), nullptr);
  }
  png_read_end(reader.png, nullptr);
  return true;
}

// An animation says so in a chunk before its first picture: length, type, content, checksum.
bool is_animation(std::span<const std::byte> bytes) {
  for (size_t at = 8; at + 8 <= bytes.size();) {
    uint32_t length = 0;
    for (int i = 0; i < 4; ++i) length = length << 8 | std::to_integer<uint32_t>(bytes[at + i]);
    const std::string_view type(reinterpret_cast<const char*>(bytes.data()) + at + 4, 4);
    if (type == "acTL") return true;
    if (type == "IDAT") return false;
    at += 12 + size_t{length};
  }
  return false;
}

// --- writing ---

void append_bytes(png_structp png, png_bytep from, size_t count) {
  static_cast<std::string*>(png_get_io_ptr(png))->append(reinterpret_cast<char*>(from), count);
}
void flush_nothing(png_structp) {}

struct PngWriter {
  png_structp png;
  png_infop info;
  explicit PngWriter(Source& source)
      : png(png_create_write_struct(PNG_LIBPNG_VER_STRING, &source, on_error, on_warning)),
        info(png ? png_create_info_struct(png) : nullptr) {
    check(info != nullptr, ErrorKind::system, "png: there is no memory");
  }
  PngWriter(const PngWriter&) = delete;
  ~PngWriter() { png_destroy_write_struct(&png, &info); }
};

// False if the library gave up.
bool write_rows(const PngWriter& writer, const Image& image) {
  if (setjmp(png_jmpbuf(writer.png))) return false;
  png_set_IHDR(writer.png, writer.info, static_cast<png_uint_32>(image.width),
               static_cast<png_uint_32>(image.height), 8, PNG_COLOR_TYPE_RGB, PNG_INTERLACE_NONE,
               PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  png_write_info(writer.png, writer.info);
  for (int64_t y = 0; y < image.height; ++y) png_write_row(writer.png, image.row(y));
  png_write_end(writer.png, writer.info);
  return true;
}

}  // namespace

bool is_png(std::span<const std::byte> bytes) {
  return bytes.size() >= 8 && std::memcmp(bytes.data(), "\x89PNG\r\n\x1a\n", 8) == 0;
}

Image decode_png(std::span<const std::byte> bytes, const std::string& name) {
  check(!is_animation(bytes), ErrorKind::data, "{}: the PNG file is an animation; give one image",
        name);
  Source source{bytes};
  const PngReader reader(source);
  Image image;
  const int passes = read_header(reader);
  if (passes > 0) {
    image = image_of_size(png_get_image_height(reader.png, reader.info),
                          png_get_image_width(reader.png, reader.info), name);
  }
  check(passes > 0 && read_rows(reader, passes, image), ErrorKind::data,
        "{}: the PNG file is cut short or damaged: {}", name,
        static_cast<const char*>(source.message));
  return image;
}

std::string encode_png(const Image& image) {
  check(image.height > 0 && image.width > 0, ErrorKind::usage, "png: an image without a pixel");
  std::string file;
  Source source{};
  const PngWriter writer(source);
  png_set_write_fn(writer.png, &file, append_bytes, flush_nothing);
  png_set_compression_level(writer.png, 6);
  check(write_rows(writer, image), ErrorKind::system, "png: cannot write: {}", source.message);
  return file;
}

}  // namespace heddle
