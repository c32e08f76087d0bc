// Sizes that headers say, beside those of the decoded images.
#include "heddle/vision/encoded_size.h"

#include <gtest/gtest.h>

#include "heddle/base/files/files.h"
#include "heddle/base/json/json.h"
#include "heddle/vision/image.h"
#include "tests/support/places.h"

namespace heddle {
namespace {

std::string file_of(const std::string& name) {
  return read_file(std::string(testing::kFixtures) + "/images/" + name);
}
std::optional<ImageSize> size_of(std::string_view bytes) {
  return encoded_size(std::as_bytes(std::span(bytes)));
}

TEST(EncodedSize, is_that_of_the_decoded_image) {
  for (const char* name :
       {"420.jpg", "422.jpg", "444.jpg", "cmyk.jpg", "grey.jpg", "progressive.jpg", "grey.png",
        "grey_alpha.png", "interlaced.png", "one_bit.png", "palette.png", "rgb.png", "rgba.png",
        "sixteen_bit.png"}) {
    const std::string file = file_of(name);
    const Image image = decode_image(std::as_bytes(std::span(file)), name);
    EXPECT_EQ(size_of(file), image.size()) << name;
  }
}

TEST(EncodedSize, vast_images_say_so_before_any_memory_is_taken) {
  for (const char* name : {"vast.jpg.bad", "vast.png.bad"}) {
    const std::optional<ImageSize> size = size_of(file_of(name));
    ASSERT_TRUE(size.has_value()) << name;
    EXPECT_GT(size->height * size->width, kMostPixels) << name;
  }
}

TEST(EncodedSize, files_that_end_early_and_other_bytes_have_none_and_are_never_read_beyond) {
  for (const char* name : {"420.jpg", "rgb.png"}) {
    const std::string file = file_of(name);
    const std::optional<ImageSize> whole = size_of(file);
    for (size_t n = 0; n < std::min<size_t>(file.size(), 1000); ++n) {
      const std::string cut = file.substr(0, n);  // its own memory, for the sanitizers
      const std::optional<ImageSize> size = size_of(cut);
      EXPECT_TRUE(!size || size == whole) << name << " " << n;
    }
    EXPECT_FALSE(size_of(file.substr(0, 16)).has_value());
  }
  EXPECT_FALSE(size_of("").has_value());
  EXPECT_FALSE(size_of("GIF89a and more, as long as a header is").has_value());
  EXPECT_FALSE(size_of("\xff\xd8\xff\xd9").has_value());
}

}  // namespace
}  // namespace heddle
