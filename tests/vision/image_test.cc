// Image files against what Pillow makes of them, and hostile ones; resizing to the bit as Pillow.
#include "heddle/vision/image.h"

#include <gtest/gtest.h>

#include "heddle/base/json/json.h"
#include "heddle/vision/orientation.h"
#include "heddle/vision/resize.h"
#include "tests/base/temporary.h"
#include "tests/vision/drawn.h"

namespace heddle {
namespace {

using namespace std::string_literals;
using testing::crc_of;
using testing::image_fixture;
using testing::noise;

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

TEST(ImageFiles, pixels_are_those_of_pillow) {
  const Json cases = Json::load(image_fixture("images.json"));
  ASSERT_EQ(cases.at("files").size(), 14U);
  for (const Json& file : cases.at("files").as_array()) {
    const Image image = read_image(image_fixture(file.get_string("file")));
    EXPECT_EQ(image.height, file.get_int("height"));
    EXPECT_EQ(image.width, file.get_int("width"));
    EXPECT_EQ(crc_of(image), file.get_int("crc")) << file.get_string("file");
  }
}

// To Pillow all files of four colours hold the light that is left, whether Adobe's marker says so
// or nothing does.
TEST(ImageFiles, four_colours_without_adobes_marker_are_the_same) {
  std::string file = read_file(image_fixture("cmyk.jpg"));
  const Image marked = decode_image(bytes_of(file), "marked");
  const size_t at = file.find("\xff\xee");
  ASSERT_EQ(file.substr(at + 4, 5), "Adobe");
  file.erase(at, 2 + 14);
  EXPECT_EQ(decode_image(bytes_of(file), "plain").pixels, marked.pixels);
}

TEST(ImageFiles, every_cut_of_a_file_is_refused) {
  for (const char* name : {"420.jpg", "progressive.jpg", "cmyk.jpg", "rgb.png", "interlaced.png"}) {
    const std::string whole = read_file(image_fixture(name));
    // A JPEG file may lack the marker of its end, and a row's last bits.
    for (size_t size = 0; size + 16 < whole.size(); size += 7) {
      const std::string cut = whole.substr(0, size);
      expect_error(ErrorKind::data, {"cut.name"}, [&] { decode_image(bytes_of(cut), "cut.name"); });
    }
  }
}

TEST(ImageFiles, changed_bytes_are_refused_or_read_but_never_harm) {
  for (const char* name : {"420.jpg", "progressive.jpg", "palette.png", "interlaced.png"}) {
    const std::string whole = read_file(image_fixture(name));
    uint32_t state = 1;
    for (int round = 0; round < 300; ++round) {
      std::string changed = whole;
      for (int i = 0; i < 3; ++i) {
        state = state * 1664525 + 1013904223;
        changed[(state >> 8) % changed.size()] = static_cast<char>(state >> 24);
      }
      try {
        const Image image = decode_image(bytes_of(changed), name);
        EXPECT_EQ(static_cast<int64_t>(image.pixels.size()), image.height * image.width * 3);
      } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::data) << error.what();
      }
    }
  }
}

TEST(ImageFiles, vast_animated_and_other_files_are_refused_by_name) {
  expect_error(ErrorKind::data, {"vast.png.bad", "65535 x 65535", "178956970"},
               [] { read_image(image_fixture("vast.png.bad")); });
  expect_error(ErrorKind::data, {"vast.jpg.bad", "is too large", "65500 pixels"},
               [] { read_image(image_fixture("vast.jpg.bad")); });
  expect_error(ErrorKind::data, {"animation.png.bad", "animation"},
               [] { read_image(image_fixture("animation.png.bad")); });
  expect_error(ErrorKind::data, {"images.json is no image that heddle knows", "JPEG and PNG"},
               [] { read_image(image_fixture("images.json")); });
  expect_error(ErrorKind::data, {"x.gif is a GIF file"},
               [] { decode_image(bytes_of("GIF89a"), "x.gif"); });
  expect_error(ErrorKind::data, {"x.jpg is an empty file"}, [] { decode_image({}, "x.jpg"); });
  expect_error(ErrorKind::data, {"nowhere.png"}, [] { read_image(image_fixture("nowhere.png")); });
}

// A progressive file whose first scan stands 200 times.
TEST(ImageFiles, jpeg_of_endless_scans_is_refused) {
  const std::string whole = read_file(image_fixture("progressive.jpg"));
  const size_t begin = whole.find("\xff\xda"),
               end = std::min(whole.find("\xff\xda", begin + 2), whole.find("\xff\xc4", begin + 2));
  ASSERT_LT(end, whole.size());
  std::string many = whole.substr(0, end);
  for (int i = 0; i < 200; ++i) many += whole.substr(begin, end - begin);
  many += whole.substr(end);
  expect_error(ErrorKind::data, {"many.jpg", "more than 100 scans"},
               [&] { decode_image(bytes_of(many), "many.jpg"); });
}

TEST(ImageFiles, written_png_is_read_to_the_bit) {
  for (const auto& [height, width] : {std::pair(1, 1), std::pair(7, 3), std::pair(40, 65)}) {
    const Image image = noise(height, width, height);
    const std::string file = encode_png(image);
    const auto bytes = bytes_of(file);
    EXPECT_TRUE(is_png(bytes));
    EXPECT_EQ(decode_image(bytes, "written"), image);
  }
}

std::string from_hex(const std::string& text) {
  std::string bytes;
  for (size_t i = 0; i + 1 < text.size(); i += 2) {
    bytes += static_cast<char>(std::stoi(text.substr(i, 2), nullptr, 16));
  }
  return bytes;
}

// All orientations, one below and one above them, in both byte orders and widths of numbers.
TEST(UprightImage, is_turned_as_pillow_turns_it) {
  const Json cases = Json::load(image_fixture("images.json"));
  ASSERT_EQ(cases.at("turned").size(), 30U);
  const std::string plain = read_file(image_fixture("420.jpg"));
  const TemporaryFolder folder;
  for (const Json& c : cases.at("turned").as_array()) {
    std::string file = plain;
    file.insert(static_cast<size_t>(c.get_int("at")), from_hex(c.get_string("exif")));
    folder.write("photo.jpg", file);
    const Image image = read_upright_image(folder / "photo.jpg");
    EXPECT_EQ(image.size(), (ImageSize{c.get_int("height"), c.get_int("width")})) << c.dump();
    EXPECT_EQ(crc_of(image), c.get_int("crc")) << c.dump();
    const ImageSize stored = read_image(folder / "photo.jpg").size();
    EXPECT_EQ(turned(stored, exif_orientation(bytes_of(file))), image.size()) << c.dump();
    EXPECT_EQ(crc_of(read_image(folder / "photo.jpg")),
              crc_of(read_image(image_fixture("420.jpg"))));
  }
}

// A chunk of a PNG file: its length, its name, what it holds, a checksum that nothing looks at.
TEST(UprightImage, png_files_say_it_in_a_chunk_before_or_behind_the_pixels) {
  const std::string exif = "MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0\0\0\0\0"s;
  const std::string chunk = "\0\0\0\x1a"s + "eXIf" + exif + "\0\0\0\0"s;
  ASSERT_EQ(exif.size(), 0x1aU);
  const std::string plain = read_file(image_fixture("rgb.png"));
  for (const size_t at : {size_t{8 + 25}, plain.size() - 12}) {
    std::string file = plain;
    file.insert(at, chunk);
    EXPECT_EQ(exif_orientation(bytes_of(file)), 6) << at;
    for (size_t size = 0; size < file.size(); size += 3) {
      const std::vector<char> cut(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(size));
      EXPECT_LE(exif_orientation(std::as_bytes(std::span(cut))), 6);
    }
  }
}

TEST(UprightImage, damaged_exif_data_say_nothing_and_are_never_read_beyond) {
  const Json cases = Json::load(image_fixture("images.json"));
  const std::string exif = from_hex(cases.at("turned").as_array()[18].get_string("exif"));
  const std::string begin = "\xff\xd8";
  ASSERT_EQ(exif_orientation(bytes_of(begin + exif)), 6);
  for (size_t size = 0; size < exif.size(); ++size) {
    const std::string cut = begin + exif.substr(0, size);
    const std::vector<char> own(cut.begin(), cut.end());  // a sanitizer sees its end
    const int orientation = exif_orientation(std::as_bytes(std::span(own)));
    EXPECT_TRUE(orientation == 1 || orientation == 6) << size;
    for (const char byte : {'\x00', '\xff', '\x7f'}) {
      std::string changed = begin + exif;
      changed[begin.size() + size] = byte;
      const int other = exif_orientation(bytes_of(changed));
      EXPECT_TRUE(other >= 1 && other <= 8);
    }
  }
  EXPECT_EQ(exif_orientation(bytes_of(read_file(image_fixture("rgb.png")))), 1);
  EXPECT_EQ(exif_orientation({}), 1);
}

TEST(Resize, bits_are_those_of_pillow) {
  const Json cases = Json::load(image_fixture("images.json"));
  ASSERT_EQ(cases.at("resized").size(), 120U);
  for (const Json& c : cases.at("resized").as_array()) {
    const std::vector<int64_t> from = c.at("from").as_ints(), to = c.at("to").as_ints();
    const Resample filter =
        c.get_string("filter") == "bilinear" ? Resample::bilinear : Resample::bicubic;
    const Image image = resize(noise(from[0], from[1], c.get_int("seed")), to[0], to[1], filter);
    EXPECT_EQ(image.height, to[0]);
    EXPECT_EQ(image.width, to[1]);
    EXPECT_EQ(crc_of(image), c.get_int("crc")) << c.dump();
  }
}

TEST(Resize, sizes_that_cannot_be_are_refused) {
  const Image image(2, 3);
  expect_error(ErrorKind::usage, {"0 x 4"}, [&] { resize(image, 4, 0, Resample::bilinear); });
  expect_error(ErrorKind::usage, {"178956970"},
               [&] { resize(image, 1 << 20, 1 << 20, Resample::bilinear); });
}

}  // namespace
}  // namespace heddle
