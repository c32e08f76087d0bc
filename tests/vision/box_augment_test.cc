// Augmented boxes lie around the pixels that they lay around before.
#include "heddle/vision/box_augment.h"

#include <gtest/gtest.h>

#include <set>

#include "heddle/vision/image_ops.h"
#include "tests/base/temporary.h"
#include "tests/vision/drawn.h"

namespace heddle {
namespace {

// A white rectangle on black.
BoxedImage rectangle(ImageSize size, PixelBox at, Rgb color = {255, 255, 255}) {
  BoxedImage one{Image(size.height, size.width), {}};
  paint(one.image, at, color);
  const auto left = static_cast<double>(at.left), top = static_cast<double>(at.top);
  one.boxes.push_back({.box = Box::of_corner(left, top, static_cast<double>(at.width),
                                             static_cast<double>(at.height)),
                       .label = 3,
                       .area = 7});
  return one;
}

// Around the pixels that are more than half as bright as the rectangle, in a channel.
Box seen(const Image& image, int channel = 0) {
  Box box{1e9, 1e9, -1, -1};
  for (int64_t y = 0; y < image.height; ++y) {
    for (int64_t x = 0; x < image.width; ++x) {
      if (image.row(y)[3 * x + channel] < 128) continue;
      const auto px = static_cast<double>(x), py = static_cast<double>(y);
      box = enclosing(box, {px, py, px + 1, py + 1});
    }
  }
  return box;
}

void expect_around(const BoxedImage& one, const Box& box, int channel, uint64_t sample) {
  const Box pixels = seen(one.image, channel);
  EXPECT_NEAR(box.x0, pixels.x0, 1) << sample;
  EXPECT_NEAR(box.y0, pixels.y0, 1) << sample;
  EXPECT_NEAR(box.x1, pixels.x1, 1) << sample;
  EXPECT_NEAR(box.y1, pixels.y1, 1) << sample;
}

TEST(BoxAugment, boxes_follow_their_pixels) {
  const BoxAugmentation how{
      .scale_low = 0.5, .scale_high = 2, .crop_edges = 0.5, .min_visible = 0, .turns = "all"};
  int64_t kept = 0, cut = 0;
  for (uint64_t sample = 0; sample < 300; ++sample) {
    const BoxedImage one = rectangle({60, 90}, {5 + static_cast<int64_t>(sample % 20),
                                                10 + static_cast<int64_t>(sample % 31), 22, 33});
    const BoxedImage result = augment_boxes(one, how, {80, 120}, {.seed = 1, .sample = sample});
    if (result.boxes.empty()) {
      EXPECT_TRUE(seen(result.image).x1 < 0 || seen(result.image).area() < 80) << sample;
      continue;
    }
    ++kept;
    const Box& box = result.boxes[0].box;
    EXPECT_EQ(result.boxes[0].label, 3);
    EXPECT_FALSE(result.boxes[0].area.has_value());
    EXPECT_EQ(box, clipped(box, result.image.size()));
    cut += box.x0 == 0 || box.y0 == 0;
    expect_around(result, box, 0, sample);
  }
  EXPECT_GT(kept, 250);
  EXPECT_GT(cut, 20);
}

TEST(BoxAugment, objects_that_are_mostly_cut_off_are_dropped) {
  const BoxAugmentation how{.scale_low = 3, .scale_high = 3, .min_visible = 0.6};
  int64_t dropped = 0;
  for (uint64_t sample = 0; sample < 100; ++sample) {
    const BoxedImage one = rectangle({60, 60}, {20, 20, 10, 10});
    const BoxedImage result = augment_boxes(one, how, {60, 60}, {.seed = 1, .sample = sample});
    EXPECT_EQ(result.image.size(), (ImageSize{60, 60}));
    // The part is a third of the image, so an object has 30 x 30 pixels if all of it is seen.
    const double pixels = seen(result.image).x1 < 0 ? 0 : seen(result.image).area();
    if (result.boxes.empty()) {
      ++dropped;
      EXPECT_LT(pixels, 0.7 * 900);
    } else {
      EXPECT_GT(pixels, 0.5 * 900);
    }
  }
  EXPECT_GT(dropped, 20);
  EXPECT_LT(dropped, 90);
}

TEST(BoxAugment, eight_turns_are_eight_images) {
  BoxedImage one{testing::noise(5, 7, 1), {{.box = {1, 2, 3, 5}}}};
  std::set<std::vector<uint8_t>> all;
  for (int turn = 0; turn < 8; ++turn) {
    const BoxedImage result = turned(one, turn);
    EXPECT_EQ(result.image.size(), turn < 4 ? (ImageSize{5, 7}) : (ImageSize{7, 5}));
    all.insert(result.image.pixels);
    const BoxedImage mark = turned(rectangle({5, 7}, {2, 1, 3, 2}), turn);
    EXPECT_EQ(mark.boxes[0].box, seen(mark.image)) << turn;
  }
  EXPECT_EQ(all.size(), 8U);
}

TEST(BoxAugment, a_mosaic_holds_parts_of_four_images) {
  std::vector<BoxedImage> four;
  for (size_t i = 0; i < 3; ++i) {
    Rgb color = {};
    color[i] = 255;
    four.push_back(rectangle({60, 90}, {20, 30, 20, 30}, color));
    four.back().boxes[0].label = static_cast<int32_t>(i);
  }
  four.push_back({Image(40, 50), {}});
  const BoxAugmentation how{.mosaic = 1, .min_visible = 0, .turns = "all"};
  std::set<int32_t> labels;
  for (uint64_t sample = 0; sample < 100; ++sample) {
    const BoxedImage result = augment_mosaic(four, how, {80, 100}, {.seed = 1, .sample = sample});
    EXPECT_EQ(std::max(result.image.height, result.image.width), 100);
    for (const LabelledBox& one : result.boxes) {
      labels.insert(one.label);
      expect_around(result, one.box, one.label, sample);
    }
  }
  EXPECT_EQ(labels, (std::set<int32_t>{0, 1, 2}));
}

TEST(BoxAugment, no_edge_becomes_too_short_for_a_model) {
  const BoxAugmentation how{
      .scale_low = 0.1, .scale_high = 0.1, .crop_edges = 0.05, .min_visible = 0};
  const BoxedImage one = rectangle({60, 90}, {0, 0, 60, 90});
  for (uint64_t sample = 0; sample < 20; ++sample) {
    const BoxedImage result = augment_boxes(one, how, {64, 8}, {.seed = 1, .sample = sample});
    EXPECT_EQ(result.image.size(), (ImageSize{16, 8}));
    ASSERT_EQ(result.boxes.size(), 1U);
    EXPECT_EQ(result.boxes[0].box, (Box{0, 0, 8, 16}));
  }
}

TEST(BoxAugment, nothing_asked_is_the_image_resized) {
  const BoxedImage one{testing::noise(30, 40, 2), {{.box = {3, 6, 9, 12}, .label = 1}}};
  const BoxedImage same = augment_boxes(one, {}, {30, 40}, {});
  EXPECT_EQ(same.image, one.image);
  EXPECT_EQ(same.boxes, one.boxes);
  const BoxedImage half = augment_boxes(one, {}, {15, 20}, {});
  EXPECT_EQ(half.image, resize(one.image, 15, 20, Resample::bilinear));
  EXPECT_EQ(half.boxes[0].box, (Box{1.5, 3, 4.5, 6}));
}

TEST(BoxAugment, draws_are_those_of_seed_epoch_and_image) {
  const BoxedImage one{testing::noise(30, 40, 2), {}};
  const BoxAugmentation how{
      .mosaic = 0.5, .scale_low = 0.7, .scale_high = 1.4, .turns = "all", .box_color_jitter = 0.2};
  const auto drawn = [&](const AugmentDraw& draw) {
    return augment_boxes(one, how, {30, 40}, draw).image;
  };
  EXPECT_EQ(drawn({1, 2, 3}), drawn({1, 2, 3}));
  EXPECT_NE(drawn({1, 2, 3}), drawn({1, 3, 3}));
  EXPECT_NE(drawn({1, 2, 3}), drawn({1, 2, 4}));
  int mosaics = 0;
  for (uint64_t sample = 0; sample < 200; ++sample) {
    const auto others = draw_mosaic(how, 9, {1, 2, sample});
    mosaics += others.has_value();
    EXPECT_TRUE(!others || *std::ranges::max_element(*others) < 9);
  }
  EXPECT_NEAR(mosaics, 100, 30);
  EXPECT_FALSE(draw_mosaic({}, 9, {}).has_value());
}

TEST(BoxAugment, scales_in_the_wrong_order_are_refused) {
  const BoxAugmentation how{.scale_low = 2, .scale_high = 1};
  expect_error(ErrorKind::usage, {"train.json", "scale_low"}, [&] { how.check("train.json"); });
}

// Of an object's color, how many pixels there are.
int64_t pixels_of(const Image& image, int channel) {
  int64_t count = 0;
  for (int64_t y = 0; y < image.height; ++y) {
    for (int64_t x = 0; x < image.width; ++x) {
      count += image.row(y)[3 * x + channel] >= 128;
    }
  }
  return count;
}

TEST(BoxAugment, copied_objects_lie_around_their_pixels_and_hide_little) {
  const BoxedImage own = rectangle({60, 90}, {20, 30, 20, 30}, {255, 0, 0});
  std::vector<BoxedImage> others = {rectangle({50, 50}, {5, 6, 14, 17}, {0, 255, 0}),
                                    rectangle({80, 70}, {40, 3, 12, 9}, {0, 0, 255})};
  others[0].boxes[0].label = 1, others[1].boxes[0].label = 2;
  std::set<double> lefts;
  for (uint64_t sample = 0; sample < 100; ++sample) {
    BoxedImage result = own;
    copy_objects(result, others, {}, 10, {.seed = 1, .sample = sample});
    EXPECT_EQ(result.image.size(), own.image.size());
    ASSERT_EQ(result.boxes.size(), 3U) << sample;
    EXPECT_EQ(result.boxes[0], own.boxes[0]);
    EXPECT_GE(pixels_of(result.image, 0), 600 * 3 / 4 - 12 * 9) << sample;
    EXPECT_EQ(result.boxes[1].label, 1);
    EXPECT_EQ(result.boxes[2].label, 2);
    EXPECT_GE(pixels_of(result.image, 1), 14 * 17 * 3 / 4) << sample;
    EXPECT_EQ(result.boxes[2].box, seen(result.image, 2)) << sample;  // the last is hidden by none
    lefts.insert(result.boxes[2].box.x0);
  }
  EXPECT_GT(lefts.size(), 30U);
}

TEST(BoxAugment, copies_end_where_there_are_enough_objects) {
  const BoxedImage own = rectangle({60, 90}, {20, 30, 20, 30});
  const std::vector<BoxedImage> others(5, rectangle({50, 50}, {5, 6, 10, 10}));
  for (const int64_t most : {1, 3}) {
    BoxedImage result = own;
    copy_objects(result, others, {}, most, {.seed = 1});
    EXPECT_EQ(std::ssize(result.boxes), most);
    EXPECT_EQ(result.image.pixels == own.image.pixels, most == 1);
  }
}

TEST(BoxAugment, objects_without_room_are_not_copied) {
  const BoxedImage own = rectangle({30, 30}, {0, 0, 30, 30}, {255, 0, 0});
  for (const int64_t side : {20, 31}) {  // two fifths of what is there, and beyond the image
    BoxedImage result = own;
    const BoxedImage other = rectangle({40, 40}, {3, 4, side, side}, {0, 255, 0});
    copy_objects(result, {&other, 1}, {}, 10, {.seed = 1});
    EXPECT_EQ(result.boxes, own.boxes);
    EXPECT_EQ(result.image.pixels, own.image.pixels);
  }
}

TEST(BoxAugment, what_a_copied_box_shows_of_others_comes_along) {
  BoxedImage other = rectangle({50, 50}, {5, 6, 24, 24});
  other.boxes.push_back({.box = Box::of_corner(10, 10, 6, 5), .label = 4});
  other.boxes.push_back({.box = Box::of_corner(28, 10, 20, 20), .label = 5});  // a tenth of it
  BoxedImage result{Image(200, 200), {}};
  copy_objects(result, {&other, 1}, {}, 100, {.seed = 2});
  ASSERT_GE(result.boxes.size(), 2U);
  EXPECT_EQ(result.boxes[0].label, 3);
  EXPECT_EQ(result.boxes[1].label, 4);
  EXPECT_EQ(result.boxes[1].box, moved(Box::of_corner(10, 10, 6, 5), result.boxes[0].box.x0 - 6,
                                       result.boxes[0].box.y0 - 5));
  for (const LabelledBox& one : result.boxes) {
    if (one.label != 5) continue;
    EXPECT_EQ(one.box.width(), 20);  // only where it is copied itself
  }
}

TEST(BoxAugment, copied_images_are_drawn_and_augmented_each_in_its_own_way) {
  const AugmentDraw draw{.seed = 1, .epoch = 2, .sample = 3};
  EXPECT_TRUE(draw_copied({}, 100, draw).empty());
  const std::vector<CopiedImage> drawn = draw_copied({.dense_targets = 4}, 100, draw),
                                 again = draw_copied({.dense_targets = 4}, 100, draw);
  ASSERT_EQ(drawn.size(), 3U);
  std::set<uint64_t> seeds;
  for (size_t i = 0; i < drawn.size(); ++i) {
    EXPECT_LT(drawn[i].image, 100);
    EXPECT_EQ(drawn[i].image, again[i].image);
    EXPECT_EQ(drawn[i].draw.seed, again[i].draw.seed);
    seeds.insert(drawn[i].draw.seed);
  }
  EXPECT_EQ(seeds.size(), 3U);
}

}  // namespace
}  // namespace heddle
