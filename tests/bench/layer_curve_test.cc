// Where the curves of two kinds of layers cross.
#include "heddle/bench/layer_curve.h"

#include <gtest/gtest.h>

#include <cmath>

namespace heddle::bench {
namespace {

TEST(Crossing, lies_where_straight_lines_over_logarithms_meet) {
  // n^2 / 100 against 3 n: level at 300, whatever lengths are timed.
  std::vector<LayerTimes> curve;
  for (const double n : {64.0, 128.0, 256.0, 512.0, 1024.0}) {
    curve.push_back({.n = std::llround(n), .milliseconds = {n * n / 100, 3 * n}});
  }
  ASSERT_TRUE(crossing(curve, 0, 1).has_value());
  EXPECT_NEAR(*crossing(curve, 0, 1), 300, 1e-9);
  EXPECT_FALSE(crossing(curve, 1, 0).has_value());
}

TEST(Crossing, is_the_last_one_of_a_noisy_curve) {
  const std::vector<LayerTimes> curve = {{.n = 64, .milliseconds = {2, 1}},
                                         {.n = 128, .milliseconds = {1, 2}},
                                         {.n = 256, .milliseconds = {4, 2}}};
  const double n = *crossing(curve, 0, 1);
  EXPECT_NEAR(n, 128 * std::sqrt(2.0), 1e-9);
}

TEST(Crossing, ends_where_a_layer_was_too_slow_to_be_timed) {
  const std::vector<LayerTimes> curve = {{.n = 64, .milliseconds = {2, 1}},
                                         {.n = 128, .milliseconds = {5, 2}},
                                         {.n = 256, .milliseconds = {-1, 9}}};
  EXPECT_DOUBLE_EQ(*crossing(curve, 0, 1), 64);
  EXPECT_FALSE(crossing({{.n = 64, .milliseconds = {-1, 1}}}, 0, 1).has_value());
}

}  // namespace
}  // namespace heddle::bench
