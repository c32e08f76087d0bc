// JPEG files, by libjpeg-turbo.
#include <csetjmp>
#include <cstdio>
// After cstdio, which it needs.
#include <jpeglib.h>
// The numbers of its warnings.
#include <jerror.h>

#include "heddle/base/error.h"
#include "heddle/vision/image.h"

namespace heddle {
namespace {

// Few bytes can ask for endless passes over a large image.
constexpr int kMostScans = 100;

// The library's state, and where it returns to when it gives up. Nothing with a destructor may lie
// between there and here.
struct JpegReader {
  jpeg_decompress_struct jpeg = {};
  jpeg_error_mgr errors = {};
  jpeg_progress_mgr progress = {};
  std::jmp_buf caller = {};
  char message[JMSG_LENGTH_MAX] = {};
  bool is_too_large = false;

  static JpegReader& of(j_common_ptr common) {
    return *static_cast<JpegReader*>(common->client_data);
  }
  [[noreturn]] void give_up() { std::longjmp(caller, 1); }
};

void on_error(j_common_ptr common) {
  JpegReader::of(common).is_too_large = common->err->msg_code == JERR_IMAGE_TOO_BIG;
  common->err->format_message(common, JpegReader::of(common).message);
  JpegReader::of(common).give_up();
}

// Of its warnings two mean that pixels are missing, which it paints grey.
void on_message(j_common_ptr common, int level) {
  const int code = common->err->msg_code;
  if (level < 0 && (code == JWRN_JPEG_EOF || code == JWRN_HIT_MARKER)) on_error(common);
}

void on_progress(j_common_ptr common) {
  if (reinterpret_cast<j_decompress_ptr>(common)->input_scan_number <= kMostScans) return;
  JpegReader& reader = JpegReader::of(common);
  std::snprintf(reader.message, sizeof reader.message, "it has more than %d scans", kMostScans);
  reader.give_up();
}

// Begins; false if the library gave up.
bool read_header(JpegReader& reader, std::span<const std::byte> bytes) {
  reader.jpeg.err = jpeg_std_error(&reader.errors);
  reader.jpeg.client_data = &reader;
  reader.errors.error_exit = on_error;
  reader.errors.emit_message = on_message;
  if (setjmp(reader.caller)) return false;
  jpeg_create_decompress(&reader.jpeg);
  reader.progress.progress_monitor = on_progress;
  reader.jpeg.progress = &reader.progress;
  jpeg_mem_src(&reader.jpeg, reinterpret_cast<const unsigned char*>(bytes.data()),
               static_cast<unsigned long>(bytes.size()));
  jpeg_read_header(&reader.jpeg, TRUE);
  const J_COLOR_SPACE space = reader.jpeg.jpeg_color_space;
  reader.jpeg.out_color_space = space == JCS_CMYK || space == JCS_YCCK ? JCS_CMYK : JCS_RGB;
  reader.jpeg.dct_method = JDCT_ISLOW;
  return true;
}

// A row of cyan, magenta, yellow and black, which hold the light that is left, not the ink, as
// files of Adobe's do and, to Pillow, all. As it computes them: what black leaves, less each
// colour's share of that.
void to_rgb(const uint8_t* cmyk, int64_t width, uint8_t* rgb) {
  for (int64_t x = 0; x < width; ++x) {
    const uint8_t* left = cmyk + 4 * x;
    const int light = left[3];
    for (int c = 0; c < 3; ++c) {
      const int product = (255 - left[c]) * light + 128;
      rgb[3 * x + c] = static_cast<uint8_t>(std::max(0, light - ((product + (product >> 8)) >> 8)));
    }
  }
}

// All rows; `row` has room for one of four channels. False if the library gave up.
bool read_rows(JpegReader& reader, Image& image, uint8_t* row) {
  if (setjmp(reader.caller)) return false;
  jpeg_start_decompress(&reader.jpeg);
  while (reader.jpeg.output_scanline < reader.jpeg.output_height) {
    uint8_t* rgb = image.row(reader.jpeg.output_scanline);
    const bool is_rgb = reader.jpeg.out_color_space == JCS_RGB;
    JSAMPROW place = is_rgb ? rgb : row;
    jpeg_read_scanlines(&reader.jpeg, &place, 1);
    if (!is_rgb) to_rgb(row, image.width, rgb);
  }
  jpeg_finish_decompress(&reader.jpeg);
  return true;
}

}  // namespace

bool is_jpeg(std::span<const std::byte> bytes) {
  return bytes.size() >= 3 && bytes[0] == std::byte{0xff} && bytes[1] == std::byte{0xd8} &&
         bytes[2] == std::byte{0xff};
}

Image decode_jpeg(std::span<const std::byte> bytes, const std::string& name) {
  JpegReader reader;
  struct Closer {
    jpeg_decompress_struct& jpeg;
    ~Closer() { jpeg_destroy_decompress(&jpeg); }
  } closer{reader.jpeg};
  Image image;
  bool is_whole = read_header(reader, bytes);
  if (is_whole) {
    image = image_of_size(reader.jpeg.image_height, reader.jpeg.image_width, name);
    std::vector<uint8_t> row(static_cast<size_t>(image.width) * 4);
    is_whole = read_rows(reader, image, row.data());
  }
  check(is_whole, ErrorKind::data, "{}: the JPEG file is {}: {}", name,
        reader.is_too_large ? "too large" : "cut short or damaged",
        static_cast<const char*>(reader.message));
  return image;
}

}  // namespace heddle
