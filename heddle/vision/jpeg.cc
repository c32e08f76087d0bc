// JPEG files, by libjpeg-turbo.
#include <csetjmp>
#include <cstdio>
// After cstdio, which it needs.
#include <jpeglib.h>
// The numbers of its warnings.
#include <jerror.h>

#include "heddle/base/error.h"
#include "heddle/vision/image_formats.h"

namespace heddle {
namespace {

// Few bytes can ask for endless passes over a large image.
constexpr int kMostScans = 100;

// The library's state, and where it returns to when it gives up. Nothing with a destructor may lie
// between there and here.
struct Decoder {
  jpeg_decompress_struct jpeg = {};
  jpeg_error_mgr errors = {};
  jpeg_progress_mgr progress = {};
  std::jmp_buf caller = {};
  char message[JMSG_LENGTH_MAX] = {};

  static Decoder& of(j_common_ptr common) { return *static_cast<Decoder*>(common->client_data); }
  [[noreturn]] void give_up() { std::longjmp(caller, 1); }
};

void on_error(j_common_ptr common) {
  common->err->format_message(common, Decoder::of(common).message);
  Decoder::of(common).give_up();
}

// Of its warnings two mean that pixels are missing, which it paints grey.
void on_message(j_common_ptr common, int level) {
  const int code = common->err->msg_code;
  if (level < 0 && (code == JWRN_JPEG_EOF || code == JWRN_HIT_MARKER)) on_error(common);
}

void on_progress(j_common_ptr common) {
  if (reinterpret_cast<j_decompress_ptr>(common)->input_scan_number <= kMostScans) return;
  Decoder& decoder = Decoder::of(common);
  std::snprintf(decoder.message, sizeof decoder.message, "it has more than %d scans", kMostScans);
  decoder.give_up();
}

// Begins; false if the library gave up.
bool read_header(Decoder& decoder, std::span<const std::byte> bytes) {
  decoder.jpeg.err = jpeg_std_error(&decoder.errors);
  decoder.jpeg.client_data = &decoder;
  decoder.errors.error_exit = on_error;
  decoder.errors.emit_message = on_message;
  if (setjmp(decoder.caller)) return false;
  jpeg_create_decompress(&decoder.jpeg);
  decoder.progress.progress_monitor = on_progress;
  decoder.jpeg.progress = &decoder.progress;
  jpeg_mem_src(&decoder.jpeg, reinterpret_cast<const unsigned char*>(bytes.data()),
               static_cast<unsigned long>(bytes.size()));
  jpeg_read_header(&decoder.jpeg, TRUE);
  const J_COLOR_SPACE space = decoder.jpeg.jpeg_color_space;
  decoder.jpeg.out_color_space = space == JCS_CMYK || space == JCS_YCCK ? JCS_CMYK : JCS_RGB;
  decoder.jpeg.dct_method = JDCT_ISLOW;
  return true;
}

// A row of cyan, magenta, yellow and black. Files of Adobe's hold the light that is left, not the
// ink. As Pillow computes it: what black leaves, less each colour's share of that.
void to_rgb(const uint8_t* cmyk, int64_t width, bool is_light, uint8_t* rgb) {
  for (int64_t x = 0; x < width; ++x) {
    const uint8_t* ink = cmyk + 4 * x;
    const uint8_t flip = is_light ? 0xff : 0;
    const int light = 255 - (ink[3] ^ flip);
    for (int c = 0; c < 3; ++c) {
      const int product = (ink[c] ^ flip) * light + 128;
      rgb[3 * x + c] = static_cast<uint8_t>(std::max(0, light - ((product + (product >> 8)) >> 8)));
    }
  }
}

// All rows; `row` has room for one of four channels. False if the library gave up.
bool read_rows(Decoder& decoder, Image& image, uint8_t* row) {
  if (setjmp(decoder.caller)) return false;
  jpeg_start_decompress(&decoder.jpeg);
  while (decoder.jpeg.output_scanline < decoder.jpeg.output_height) {
    uint8_t* rgb = image.row(decoder.jpeg.output_scanline);
    const bool is_rgb = decoder.jpeg.out_color_space == JCS_RGB;
    JSAMPROW place = is_rgb ? rgb : row;
    jpeg_read_scanlines(&decoder.jpeg, &place, 1);
    if (!is_rgb) to_rgb(row, image.width, decoder.jpeg.saw_Adobe_marker, rgb);
  }
  jpeg_finish_decompress(&decoder.jpeg);
  return true;
}

}  // namespace

bool is_jpeg(std::span<const std::byte> bytes) {
  return bytes.size() >= 3 && bytes[0] == std::byte{0xff} && bytes[1] == std::byte{0xd8} &&
         bytes[2] == std::byte{0xff};
}

Image decode_jpeg(std::span<const std::byte> bytes, const std::string& name) {
  Decoder decoder;
  struct Closer {
    jpeg_decompress_struct& jpeg;
    ~Closer() { jpeg_destroy_decompress(&jpeg); }
  } closer{decoder.jpeg};
  Image image;
  bool is_whole = read_header(decoder, bytes);
  if (is_whole) {
    image = image_of_size(decoder.jpeg.image_height, decoder.jpeg.image_width, name);
    std::vector<uint8_t> row(static_cast<size_t>(image.width) * 4);
    is_whole = read_rows(decoder, image, row.data());
  }
  check(is_whole, ErrorKind::data, "{}: the JPEG file is cut short or damaged: {}", name,
        static_cast<const char*>(decoder.message));
  return image;
}

}  // namespace heddle
