// Basic operations on images against torchvision's on Pillow's.
#include "heddle/vision/image_ops.h"

#include <gtest/gtest.h>

#include "heddle/base/json/json.h"
#include "tests/vision/drawn.h"
#include "tests/vision/op_names.h"

namespace heddle {
namespace {

using testing::crc_of;
using testing::image_fixture;
using testing::noise;

// As changed() of tools/make_image_fixtures.py: few levels, no colour, one level.
Image changed(Image image, const std::string& kind) {
  for (size_t i = 0; i < image.pixels.size(); i += 3) {
    uint8_t* rgb = image.pixels.data() + i;
    if (kind == "dim") {
      rgb[0] = static_cast<uint8_t>(rgb[0] * 60 / 256 + 20);
      rgb[1] = static_cast<uint8_t>(rgb[1] * 110 / 256 + 90);
      rgb[2] = static_cast<uint8_t>(rgb[2] * 7 / 256 + 200);
    } else if (kind == "grey") {
      rgb[1] = rgb[2] = rgb[0];
    } else if (kind == "even") {
      rgb[0] = rgb[1] = rgb[2] = 77;
    }
  }
  return image;
}

TEST(ImageOps, bits_are_those_of_torchvision_on_images_of_pillow) {
  const Json cases = Json::load(image_fixture("augment.json"));
  ASSERT_EQ(cases.at("operations").size(), 301U);
  for (const Json& c : cases.at("operations").as_array()) {
    const std::vector<int64_t> size = c.at("size").as_ints();
    Image image = changed(noise(size[0], size[1], c.get_int("seed")), c.get_string("kind"));
    apply(image, testing::op_named(c.get_string("op")), c.get_double("magnitude"), {0, 200, 7});
    EXPECT_EQ(crc_of(image), c.get_int("crc")) << c.dump();
  }
}

TEST(ImageOps, grey_image_stays_grey) {
  const Json cases = Json::load(image_fixture("augment.json"));
  for (const Json& c : cases.at("operations").as_array()) {
    Image image = changed(noise(9, 11, 5), "grey");
    apply(image, testing::op_named(c.get_string("op")), c.get_double("magnitude"));
    for (size_t i = 0; i < image.pixels.size(); i += 3) {
      ASSERT_EQ(image.pixels[i], image.pixels[i + 1]) << c.dump();
      ASSERT_EQ(image.pixels[i], image.pixels[i + 2]) << c.dump();
    }
  }
}

TEST(ImageOps, flipped_columns_are_those_from_the_other_side) {
  for (const int64_t width : {1, 2, 7}) {
    const Image image = noise(3, width, 4);
    Image flipped = image;
    flip_columns(flipped);
    for (int64_t y = 0; y < 3; ++y) {
      for (int64_t x = 0; x < width; ++x) {
        for (int64_t c = 0; c < 3; ++c) {
          ASSERT_EQ(flipped.row(y)[3 * x + c], image.row(y)[3 * (width - 1 - x) + c]);
        }
      }
    }
  }
}

TEST(ImageOps, crop_beyond_the_image_is_filled) {
  const Image image = noise(5, 7, 3);
  for (const Rgb fill : {Rgb{}, Rgb{9, 0, 255}}) {
    for (int64_t top : {-6, -2, 0, 3, 9}) {
      for (int64_t left : {-8, -1, 0, 4, 7}) {
        const Image part = crop(image, {top, left, 4, 6}, fill);
        for (int64_t y = 0; y < 4; ++y) {
          for (int64_t x = 0; x < 18; ++x) {
            const int64_t row = top + y, byte = 3 * left + x;
            const bool is_inside = row >= 0 && row < 5 && byte >= 0 && byte < 21;
            ASSERT_EQ(part.row(y)[x], is_inside ? image.row(row)[byte] : fill[x % 3])
                << top << " " << left << " " << y << " " << x;
          }
        }
      }
    }
  }
}

TEST(ImageOps, only_pixels_of_the_box_are_painted) {
  const Image image = noise(5, 7, 3);
  for (const PixelBox box : {PixelBox{1, 2, 3, 4}, {-2, -1, 4, 3}, {3, 5, 9, 9}, {0, 0, 0, 7}}) {
    Image painted = image;
    paint(painted, box, {1, 2, 3});
    for (int64_t y = 0; y < 5; ++y) {
      for (int64_t x = 0; x < 21; ++x) {
        const bool is_inside = y >= box.top && y < box.top + box.height && x / 3 >= box.left &&
                               x / 3 < box.left + box.width;
        ASSERT_EQ(painted.row(y)[x], is_inside ? 1 + x % 3 : image.row(y)[x]) << y << " " << x;
      }
    }
  }
}

}  // namespace
}  // namespace heddle
