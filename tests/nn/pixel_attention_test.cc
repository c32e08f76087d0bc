// Attention among pixels: windows against their parts of the image alone.
#include "heddle/nn/images/pixel_attention.h"

#include <gtest/gtest.h>

#include "heddle/base/rng.h"

namespace heddle::nn {
namespace {

constexpr int64_t kWidth = 8;

std::vector<float> noise(int64_t n) {
  RngStream random(make_key(3, static_cast<uint64_t>(n), 0));
  std::vector<float> values(static_cast<size_t>(n));
  for (float& x : values) x = random.uniform() - 0.5f;
  return values;
}

class PixelAttentionTest : public ::testing::Test {
 protected:
  // The same weights for the same seed, whatever the windows.
  static std::vector<float> of(const std::vector<float>& x, const std::vector<ImageSize>& sizes,
                               const PixelAttention::Options& options) {
    Parameters parameters(5);
    const PixelAttention layer(Scope(parameters) / "a", options);
    const auto rows = static_cast<int64_t>(x.size()) / kWidth;
    return layer(Tensor::from(x, {rows, kWidth}), sizes, nn::Run{}).to_floats();
  }
  // Rows of a part of an image, line by line.
  static std::vector<float> part(const std::vector<float>& x, int64_t width, int64_t y0, int64_t x0,
                                 int64_t side) {
    std::vector<float> rows;
    for (int64_t y = y0; y < y0 + side; ++y) {
      const auto begin = x.begin() + (y * width + x0) * kWidth;
      rows.insert(rows.end(), begin, begin + side * kWidth);
    }
    return rows;
  }
};

TEST_F(PixelAttentionTest, window_is_what_its_part_of_the_image_is_alone) {
  const std::vector<float> x = noise(4 * 6 * kWidth);
  const std::vector<float> all = of(x, {{4, 6}}, {.width = kWidth, .heads = 2, .window = 2});
  for (int64_t y = 0; y < 4; y += 2) {
    for (int64_t column = 0; column < 6; column += 2) {
      EXPECT_EQ(part(all, 6, y, column, 2),
                of(part(x, 6, y, column, 2), {{2, 2}}, {.width = kWidth, .heads = 2}));
    }
  }
}

TEST_F(PixelAttentionTest, shifted_window_looks_over_the_borders_of_the_others) {
  const std::vector<float> x = noise(4 * 4 * kWidth);
  const std::vector<float> all =
      of(x, {{4, 4}}, {.width = kWidth, .heads = 2, .window = 2, .is_shifted = true});
  EXPECT_EQ(part(all, 4, 1, 1, 2),
            of(part(x, 4, 1, 1, 2), {{2, 2}}, {.width = kWidth, .heads = 2}));
  EXPECT_NE(all, of(x, {{4, 4}}, {.width = kWidth, .heads = 2, .window = 2}));
}

TEST_F(PixelAttentionTest, image_has_the_bits_it_has_alone) {
  const std::vector<float> a = noise(3 * 5 * kWidth), b = noise(4 * 4 * kWidth);
  std::vector<float> both = a;
  both.insert(both.end(), b.begin(), b.end());
  for (const int64_t window : {0, 2}) {
    const PixelAttention::Options o{.width = kWidth, .heads = 2, .window = window};
    std::vector<float> expected = of(a, {{3, 5}}, o);
    const std::vector<float> second = of(b, {{4, 4}}, o);
    expected.insert(expected.end(), second.begin(), second.end());
    EXPECT_EQ(of(both, {{3, 5}, {4, 4}}, o), expected) << window;
  }
}

TEST_F(PixelAttentionTest, nothing_is_added_where_its_output_begins_at_zero) {
  const std::vector<float> x = noise(9 * kWidth);
  EXPECT_EQ(of(x, {{3, 3}}, {.width = kWidth, .heads = 2, .output = Init::zeros()}),
            std::vector<float>(x.size(), 0));
}

}  // namespace
}  // namespace heddle::nn
