// Detectors over images in passes of a few pixels.
#include "heddle/infer/detect.h"

#include <gtest/gtest.h>

#include "tests/cli/vision_model.h"

namespace heddle {
namespace {

using Ends = std::vector<size_t>;

TEST(PassEnds, pass_has_as_many_images_as_fit_and_at_least_one) {
  const std::vector<Image> images = {Image(2, 3), Image(2, 2), Image(5, 5),
                                     Image(1, 1), Image(3, 3), Image(1, 1)};
  EXPECT_EQ(pass_ends(images, 10), (Ends{2, 3, 5, 6}));  // 6 + 4, 25, 1 + 9, 1
  EXPECT_EQ(pass_ends(images, 1), (Ends{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(pass_ends(images, 46), Ends{6});
  EXPECT_EQ(pass_ends(images, 45), (Ends{5, 6}));
  EXPECT_EQ(pass_ends({}, 10), Ends{});
}

TEST(Detection, images_give_the_same_bits_in_passes_of_any_size) {
  const testing::TempDir folder;
  const std::string path = (folder / "model").string();
  testing::write_vision_model(path, "detr");
  const ImageReader reader = load_detector(path);
  std::vector<Image> images;
  std::vector<ImageSize> sizes;
  for (const ImageSize size : {ImageSize{40, 33}, {20, 50}, {64, 48}, {31, 31}}) {
    Image image(size.height, size.width);
    for (size_t i = 0; i < image.pixels.size(); ++i) {
      image.pixels[i] = static_cast<uint8_t>(i * (17 + images.size()) % 251);
    }
    images.push_back(image);
    sizes.push_back({2 * size.height, 3 * size.width});
  }
  const auto whole = detect(reader, images, sizes, {});
  ASSERT_EQ(whole.size(), 4u);
  EXPECT_NE(whole[0], whole[1]);
  EXPECT_EQ(detect(reader, images, sizes, {}, 2500), whole);  // two, one, one
  EXPECT_EQ(detect(reader, images, sizes, {}, 1), whole);
}

}  // namespace
}  // namespace heddle
