// Real photographs: CIFAR-10 as JPEG against the pixels that Pillow found in it.
#include <gtest/gtest.h>

#include <cstring>

#include "heddle/base/files/files.h"
#include "heddle/vision/image.h"
#include "tests/base/unzipped.h"
#include "tests/support/places.h"

namespace heddle {
namespace {

TEST(ImageData, photographs_of_cifar_have_the_pixels_that_pillow_finds) {
  const std::string folder = std::string(testing::kData) + "/cifar10/";
  const std::string header = read_file(folder + "jpeg_header.bin"),
                    pack = read_file(folder + "test.jpack"),
                    decoded = testing::unzipped(folder + "test_first100_decoded.bin.gz");
  ASSERT_EQ(decoded.size(), 100U * 3073);
  size_t at = 8;
  for (int64_t i = 0; i < 100; ++i) {
    uint16_t length;
    std::memcpy(&length, pack.data() + at + 1, sizeof length);
    const std::string file = header + pack.substr(at + 3, length);
    at += 3 + size_t{length};
    const Image image = decode_image(std::as_bytes(std::span(file)), std::to_string(i));
    ASSERT_EQ(image.pixels.size(), 3072U);
    for (int64_t c = 0; c < 3; ++c) {
      for (int64_t p = 0; p < 1024; ++p) {
        ASSERT_EQ(image.pixels[3 * p + c],
                  static_cast<uint8_t>(decoded[3073 * i + 1 + 1024 * c + p]))
            << i << " " << c << " " << p;
      }
    }
  }
}

}  // namespace
}  // namespace heddle
