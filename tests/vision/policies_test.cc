// Policies of augmentation against torchvision's, and which operations they draw.
#include "heddle/vision/policies.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "heddle/base/json/json.h"
#include "tests/vision/drawn.h"
#include "tests/vision/op_names.h"

namespace heddle {
namespace {

TEST(Policies, magnitudes_are_those_of_torchvision) {
  const Json cases = Json::load(testing::image_fixture("augment.json"));
  ASSERT_EQ(cases.at("magnitudes").size(), 57U);
  for (const Json& c : cases.at("magnitudes").as_array()) {
    const ImageOp op = testing::op_named(c.get_string("op"));
    const std::vector<int64_t> size = c.at("size").as_ints();
    const MagnitudeScale scale = {.levels = c.get_int("levels"), .is_wide = c.get_bool("wide")};
    const Json::Array& values = c.at("values").as_array();
    for (int64_t level = 0; level < scale.levels; ++level) {
      const double expected = values[static_cast<size_t>(level)].as_double();
      // Four roundings to f32 of what is at most 255.
      EXPECT_NEAR(magnitude_at(op, level, scale, {size[0], size[1]}), expected, 4 * 255 * 0x1p-24)
          << c.get_string("op") << " " << level << " of " << size[1];
    }
    EXPECT_EQ(is_signed(op), c.get_bool("signed")) << c.get_string("op");
  }
}

TEST(Policies, sub_policies_for_cifar_are_those_of_torchvision) {
  const Json cases = Json::load(testing::image_fixture("augment.json"));
  const Json::Array& policies = cases.at("cifar10").as_array();
  ASSERT_EQ(policies.size(), cifar10_policy().size());
  for (size_t i = 0; i < policies.size(); ++i) {
    for (size_t step = 0; step < 2; ++step) {
      const Json::Array& expected = policies[i].as_array()[step].as_array();
      const PolicyStep& ours = cifar10_policy()[i][step];
      EXPECT_EQ(ours.op, testing::op_named(expected[0].as_string())) << i;
      EXPECT_EQ(ours.probability, expected[1].as_double()) << i;
      EXPECT_EQ(ours.level, expected[2].as_int()) << i;
    }
  }
}

// One operation at level 9, with either sign: 23 things can become of an image of 14 operations.
TEST(Policies, rand_augment_draws_every_operation_with_either_sign) {
  const Image image = testing::noise(12, 16, 1);
  std::set<std::vector<uint8_t>> expected, seen;
  for (int number = 0; number < static_cast<int>(ImageOp::invert); ++number) {
    const auto op = static_cast<ImageOp>(number);
    for (const int sign : {1, -1}) {
      Image changed = image;
      apply(changed, op, sign * magnitude_at(op, 9, {}, image.size()));
      if (sign == 1 || is_signed(op)) expected.insert(changed.pixels);
    }
  }
  for (uint64_t sample = 0; sample < 600; ++sample) {
    RngStream random(make_key(1, 2, 3, sample));
    Image changed = image;
    rand_augment(changed, 1, 9, {}, random);
    seen.insert(changed.pixels);
  }
  EXPECT_EQ(seen, expected);
  EXPECT_GE(expected.size(), 21U);  // noise has every level: two may change nothing
}

TEST(Policies, trivial_augment_draws_every_level_of_an_operation) {
  const Image image(64, 64);  // black, so that what moves shows the fill
  std::set<int64_t> shifts;
  for (uint64_t sample = 0; sample < 6000; ++sample) {
    RngStream random(make_key(1, 2, 3, sample));
    Image changed = image;
    trivial_augment(changed, {255, 255, 255}, random);
    int64_t filled = 0;
    for (int64_t x = 0; x < 64; ++x) filled += changed.row(0)[3 * x] == 255;
    const bool is_whole_column =
        changed.row(63)[0] == changed.row(0)[0] && changed.row(63)[189] == changed.row(0)[189];
    if (is_whole_column && filled > 0 && filled < 64) {
      shifts.insert(changed.row(0)[0] == 255 ? filled : -filled);
    }
  }
  for (int64_t level = 1; level < 31; ++level) {
    const auto pixels = static_cast<int64_t>(
        magnitude_at(ImageOp::translate_x, level, {.is_wide = true}, {64, 64}));
    if (pixels > 0) {
      EXPECT_TRUE(shifts.contains(pixels)) << level;
      EXPECT_TRUE(shifts.contains(-pixels)) << level;
    }
  }
}

TEST(Policies, cifar_policy_applies_steps_as_often_as_they_say) {
  const Image image = testing::noise(16, 16, 1);
  const auto is_result_of = [&](const Image& changed, std::initializer_list<PolicyStep> steps,
                                int signs) {
    Image expected = image;
    for (const PolicyStep& step : steps) {
      const double magnitude =
          step.level < 0 ? 0 : magnitude_at(step.op, step.level, {.levels = 10}, image.size());
      apply(expected, step.op, signs & 1 ? -magnitude : magnitude);
      signs >>= 1;
    }
    return changed == expected;
  };
  // Rotation (0.7) and translation (0.3) of sub-policy 1, which no other one has together.
  const PolicyStep rotate = cifar10_policy()[1][0], translate = cifar10_policy()[1][1];
  int both = 0, first = 0;
  constexpr int kDraws = 20000;
  for (uint64_t sample = 0; sample < kDraws; ++sample) {
    RngStream random(make_key(7, 0, 1, sample));
    Image changed = image;
    cifar10_augment(changed, {}, random);
    for (int signs = 0; signs < 4; ++signs) {
      both += is_result_of(changed, {rotate, translate}, signs);
      if (signs < 2) first += is_result_of(changed, {rotate}, signs);
    }
  }
  // 1/25 * 0.7 * 0.3 = 0.0084 and 1/25 * 0.7 * 0.7 = 0.0196, within four standard deviations.
  EXPECT_NEAR(both / double{kDraws}, 0.0084, 4 * std::sqrt(0.0084 / kDraws));
  EXPECT_NEAR(first / double{kDraws}, 0.0196, 4 * std::sqrt(0.0196 / kDraws));
}

}  // namespace
}  // namespace heddle
