// Augmentation as a pure function of seed, epoch and sample; where its crops lie; its fields.
#include "heddle/vision/augment.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "heddle/vision/image_ops.h"
#include "tests/base/temporary.h"
#include "tests/vision/drawn.h"

namespace heddle {
namespace {

using testing::noise;

Augmentation everything() {
  Augmentation how;
  how.random_crop = 4;
  how.flip = true;
  how.color_jitter = 0.4;
  how.auto_augment = "rand_augment";
  how.random_erasing = 0.5;
  return how;
}

TEST(Augment, depends_on_seed_epoch_and_sample_alone) {
  const Image image = noise(32, 32, 1);
  const AugmentTarget target = {image.size()};
  const AugmentDraw draw = {.seed = 3, .epoch = 5, .sample = 7};
  const Image first = augment(image, everything(), target, draw);
  for (uint64_t other = 0; other < 20; ++other) {
    augment(image, everything(), target, {.seed = 3, .epoch = 5, .sample = other});
  }
  EXPECT_EQ(augment(image, everything(), target, draw), first);
  std::set<std::vector<uint8_t>> results = {first.pixels};
  for (const AugmentDraw d : {AugmentDraw{4, 5, 7}, {3, 6, 7}, {3, 5, 8}, {5, 3, 7}, {3, 7, 5}}) {
    results.insert(augment(image, everything(), target, d).pixels);
  }
  EXPECT_EQ(results.size(), 6U);
}

TEST(Augment, nothing_asked_for_changes_nothing) {
  const Image image = noise(9, 11, 1);
  EXPECT_EQ(augment(image, {}, {image.size()}, {1, 2, 3}), image);
}

TEST(Augment, one_step_more_leaves_the_draws_of_the_others) {
  const Image image = noise(16, 16, 1);
  Augmentation crop_only, with_flip;
  crop_only.random_crop = with_flip.random_crop = 3;
  with_flip.flip = true;
  int flipped = 0;
  for (uint64_t sample = 0; sample < 200; ++sample) {
    Image plain = augment(image, crop_only, {image.size()}, {1, 1, sample});
    const Image other = augment(image, with_flip, {image.size()}, {1, 1, sample});
    if (plain == other) continue;
    flip_columns(plain);
    EXPECT_EQ(plain, other);
    ++flipped;
  }
  EXPECT_NEAR(flipped, 100, 4 * std::sqrt(50));  // four standard deviations of a fair coin's
}

TEST(Augment, random_crop_reaches_every_offset_and_fills_the_margin) {
  const Image image = noise(8, 6, 1);
  Augmentation how;
  how.random_crop = 2;
  how.augment_fill = {1, 2, 3};
  std::set<std::vector<uint8_t>> expected, seen;
  for (int64_t top = -2; top <= 2; ++top) {
    for (int64_t left = -2; left <= 2; ++left) {
      expected.insert(crop(image, {top, left, 8, 6}, {1, 2, 3}).pixels);
    }
  }
  for (uint64_t sample = 0; sample < 400; ++sample) {
    seen.insert(augment(image, how, {image.size()}, {1, 1, sample}).pixels);
  }
  EXPECT_EQ(seen.size(), 25U);
  EXPECT_EQ(seen, expected);
}

TEST(Augment, resized_crop_is_a_part_of_the_image_in_the_targets_size) {
  const Image image = noise(40, 50, 1);
  Augmentation how;
  how.random_resized_crop = 0.3;
  const AugmentTarget target = {.size = {24, 20}, .resample = Resample::bicubic};
  for (uint64_t sample = 0; sample < 20; ++sample) {
    const AugmentDraw draw = {1, 1, sample};
    RngStream random = draw.stream("augment/random_resized_crop");
    const PixelBox box = draw_crop(image.size(), 0.3, random);
    EXPECT_EQ(augment(image, how, target, draw),
              resize(crop(image, box), 24, 20, Resample::bicubic));
  }
}

// Means of 40,000 draws of torchvision's RandomResizedCrop.get_params(); within four standard
// deviations of a mean of 4,000.
TEST(Augment, crops_lie_inside_and_are_distributed_as_those_of_torchvision) {
  RngStream random(make_key(1, 1, 1));
  constexpr int kDraws = 4000;
  double areas = 0, heights = 0, tops = 0;
  for (int i = 0; i < kDraws; ++i) {
    const PixelBox box = draw_crop({300, 400}, 0.25, random);
    ASSERT_TRUE(box.top >= 0 && box.left >= 0 && box.top + box.height <= 300 &&
                box.left + box.width <= 400);
    areas += static_cast<double>(box.height * box.width) / 120000;
    heights += static_cast<double>(box.height);
    tops += static_cast<double>(box.top);
  }
  EXPECT_NEAR(areas / kDraws, 0.5212, 0.011);
  EXPECT_NEAR(heights / kDraws, 241.33, 2.4);
  EXPECT_NEAR(tops / kDraws, 29.35, 1.8);
}

TEST(Augment, erased_rectangles_are_distributed_as_those_of_torchvision) {
  RngStream random(make_key(2, 1, 1));
  constexpr int kDraws = 4000;
  double areas = 0, heights = 0;
  for (int i = 0; i < kDraws; ++i) {
    const std::optional<PixelBox> box = draw_erased({64, 64}, random);
    ASSERT_TRUE(box && box->top + box->height <= 64 && box->left + box->width <= 64);
    areas += static_cast<double>(box->height * box->width) / 4096;
    heights += static_cast<double>(box->height);
  }
  EXPECT_NEAR(areas / kDraws, 0.1747, 0.006);
  EXPECT_NEAR(heights / kDraws, 27.18, 0.8);
}

// No part of a 10:1 image has half its area and a ratio of at most 4:3.
TEST(Augment, crop_that_cannot_fit_is_the_largest_in_the_middle) {
  RngStream random(make_key(1, 1, 1));
  const PixelBox box = draw_crop({30, 300}, 0.9, random);
  EXPECT_EQ(box.height, 30);
  EXPECT_EQ(box.width, 40);
  EXPECT_EQ(box.left, 130);
  const PixelBox tall = draw_crop({301, 30}, 0.9, random);
  EXPECT_EQ(tall.height, 40);
  EXPECT_EQ(tall.top, 130);
}

TEST(Augment, rectangles_are_erased_as_often_and_as_large_as_asked_for) {
  const Image image = noise(64, 64, 1);
  Augmentation how;
  how.random_erasing = 0.25;
  how.augment_fill = {0, 255, 0};
  int erased = 0;
  constexpr int kDraws = 4000;
  for (uint64_t sample = 0; sample < kDraws; ++sample) {
    const Image result = augment(image, how, {image.size()}, {1, 1, sample});
    int64_t painted = 0;
    for (size_t i = 0; i < image.pixels.size(); i += 3) {
      painted += result.pixels[i] == 0 && result.pixels[i + 1] == 255 && result.pixels[i + 2] == 0;
    }
    if (painted == 0) continue;
    ++erased;
    EXPECT_GE(painted, 0.015 * 4096);
    EXPECT_LE(painted, 0.34 * 4096);
  }
  EXPECT_NEAR(erased, 1000, 4 * std::sqrt(4000 * 0.25 * 0.75));
}

TEST(Augment, jitter_of_a_grey_level_stays_within_its_factors) {
  Image image(4, 4);
  std::fill(image.pixels.begin(), image.pixels.end(), 100);
  Augmentation how;
  how.color_jitter = 0.5;
  int lowest = 255, highest = 0;
  for (uint64_t sample = 0; sample < 500; ++sample) {
    const Image result = augment(image, how, {image.size()}, {1, 1, sample});
    lowest = std::min<int>(lowest, result.pixels[0]);
    highest = std::max<int>(highest, result.pixels[0]);
  }
  EXPECT_GE(lowest, 50);  // of one level contrast and saturation change nothing
  EXPECT_LT(lowest, 54);
  EXPECT_GT(highest, 146);
  EXPECT_LE(highest, 150);
}

TEST(Augment, fields_are_read_and_bad_ones_named) {
  Augmentation how;
  EXPECT_TRUE(from_json(how, Json::parse(R"({"random_crop": 4, "auto_augment": "cifar10",
                        "augment_fill": [125, 123, 114]})"),
                        "x")
                  .empty());
  EXPECT_EQ(how.random_crop, 4);
  EXPECT_EQ(how.fill(), (Rgb{125, 123, 114}));
  how.check("x");
  how.augment_fill = {1, 2};
  expect_error(ErrorKind::usage, {"x", "augment_fill", "2 numbers"}, [&] { how.check("x"); });
  for (const char* bad :
       {R"({"auto_augment": "much"})", R"({"augment_fill": [1, 2, 256]})", R"({"random_crop": -1})",
        R"({"random_resized_crop": 1.5})", R"({"random_erasing": 2})",
        R"({"rand_augment_magnitude": 31})", R"({"mixup_alpha": -1})"}) {
    const std::string key(bad + 2, std::string(bad).find('"', 2) - 2);
    expect_error(ErrorKind::data, {"x", key}, [&] {
      Augmentation read;
      (void)from_json(read, Json::parse(bad), "x");
    });
  }
}

}  // namespace
}  // namespace heddle
