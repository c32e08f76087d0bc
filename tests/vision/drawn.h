// What the tests of images share: the folder of fixtures, drawn noise, checksums of pixels.
#pragma once

#include <string>

#include "heddle/base/files/files.h"
#include "heddle/vision/image.h"
#include "tests/support/places.h"

namespace heddle::testing {

inline std::string image_fixture(const std::string& name) {
  return std::string(kFixtures) + "/images/" + name;
}

inline int64_t crc_of(const Image& image) { return crc32(std::as_bytes(std::span(image.pixels))); }

/// What tools/make_image_fixtures.py draws.
inline Image noise(int64_t height, int64_t width, int64_t seed) {
  Image image(height, width);
  auto state = static_cast<uint32_t>(seed);
  for (uint8_t& byte : image.pixels) {
    state = state * 1664525 + 1013904223;
    byte = static_cast<uint8_t>(state >> 24);
  }
  return image;
}

}  // namespace heddle::testing
