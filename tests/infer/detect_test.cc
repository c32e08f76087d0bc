// Detectors over images in passes of a few pixels.
#include "heddle/infer/detect.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/base/temporary.h"
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

TEST(Detection, boxes_come_by_query_or_by_score_with_the_share_of_their_likeliest_object) {
  // Two images of two queries; two classes and no object, which is the likeliest of the first.
  const ObjectPredictions seen = {
      Tensor::from(std::vector<float>{0, 1, 2, 3, 0, 0, 1, 1, 1, 1, 1, 1}, {4, 3}),
      Tensor::from(std::vector<float>{.5f, .5f, .5f, .25f, .25f, .75f, .5f, .5f, .5f, .5f, 1, 1,
                                      .5f, .5f, 1, 1},
                   {4, 4})};
  const std::vector<ImageSize> sizes = {{8, 4}, {1, 1}};
  const std::vector<ScoredBox> boxes = query_boxes(seen, 2, sizes, "m");
  ASSERT_EQ(boxes.size(), 4u);
  EXPECT_EQ(boxes[0].label, 1);
  EXPECT_NEAR(boxes[0].score, 1 / (std::exp(-1.0) + 1 + std::exp(1.0)), 1e-12);
  EXPECT_EQ(boxes[0].box, (Box{1, 3, 3, 5}));
  EXPECT_NEAR(boxes[1].score, 1 / (1 + 2 * std::exp(-3.0)), 1e-12);
  const auto by_score = scored_boxes(seen, 2, sizes, "m");
  EXPECT_EQ(by_score[0], (std::vector<ScoredBox>{boxes[1], boxes[0]}));
  EXPECT_EQ(by_score[1], (std::vector<ScoredBox>{boxes[2], boxes[3]}));  // equals stay
}

// A box without area is one; a corner that is NaN makes the area 0 too.
TEST(Detection, box_that_is_not_finite_is_a_data_error) {
  for (size_t corner = 0; corner < 4; ++corner) {
    std::vector<float> box = {.5f, .5f, 0, 0};
    const std::vector<ImageSize> sizes = {{8, 4}};
    const Tensor logits = Tensor::from(std::vector<float>{0, 1, 2}, {1, 3});
    EXPECT_EQ(query_boxes({logits, Tensor::from(box, {1, 4})}, 1, sizes, "m").size(), 1u);
    box[corner] = std::numeric_limits<float>::quiet_NaN();
    expect_error(ErrorKind::data, {"m: ", "not finite"}, [&] {
      query_boxes({logits, Tensor::from(box, {1, 4})}, 1, sizes, "m");
    });
  }
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
