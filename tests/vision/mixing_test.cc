// MixUp and CutMix by their definitions; the distribution of what they draw.
#include "heddle/vision/mixing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numbers>
#include <numeric>

#include "heddle/base/parallel.h"
#include "tests/base/temporary.h"

namespace heddle {
namespace {

// Largest distance between the draws' distribution and the true one (Kolmogorov, Smirnov), times
// the root of their number: above 1.95 in one of 1000 samples.
double distance(double alpha, const std::function<double(double)>& distribution) {
  RngStream random(make_key(11, 0, 0));
  std::vector<double> draws(20000);
  for (double& x : draws) x = draw_beta(alpha, random);
  std::sort(draws.begin(), draws.end());
  double most = 0;
  const auto n = static_cast<double>(draws.size());
  for (size_t i = 0; i < draws.size(); ++i) {
    const double expected = distribution(draws[i]), at = static_cast<double>(i);
    most = std::max({most, std::abs(expected - at / n), std::abs(expected - (at + 1) / n)});
  }
  return most * std::sqrt(n);
}

TEST(DrawBeta, follows_the_distributions_that_have_a_closed_form) {
  EXPECT_LT(distance(1, [](double x) { return x; }), 1.95);
  EXPECT_LT(distance(2, [](double x) { return x * x * (3 - 2 * x); }), 1.95);
  EXPECT_LT(distance(0.5, [](double x) { return 2 / std::numbers::pi * std::asin(std::sqrt(x)); }),
            1.95);
}

// E x = 1/2, Var x = 1 / (4 (2 alpha + 1)).
TEST(DrawBeta, has_its_mean_and_variance_for_small_and_large_alpha) {
  for (const double alpha : {1e-300, 0.001, 0.1, 0.2, 0.8, 5.0, 1000.0}) {
    RngStream random(make_key(5, 0, 0));
    constexpr int kDraws = 40000;
    double sum = 0, squares = 0;
    for (int i = 0; i < kDraws; ++i) {
      const double x = draw_beta(alpha, random);
      ASSERT_TRUE(x >= 0 && x <= 1) << x;
      sum += x;
      squares += (x - 0.5) * (x - 0.5);
    }
    const double variance = 1 / (4 * (2 * alpha + 1));
    EXPECT_NEAR(sum / kDraws, 0.5, 4 * std::sqrt(variance / kDraws)) << alpha;
    EXPECT_NEAR(squares / kDraws, variance, 0.03 * variance) << alpha;
  }
}

// Three images of [2, 3] and two of [1, 2], two channels, four classes.
struct Batch {
  std::vector<ImageSize> sizes = {{2, 3}, {1, 2}, {2, 3}, {1, 2}, {2, 3}};
  std::vector<float> pixels = std::vector<float>(44), targets = std::vector<float>(20);

  Batch() {
    std::iota(pixels.begin(), pixels.end(), 0.0f);
    for (size_t i = 0; i < 5; ++i) targets[4 * i + i % 4] = 1;
  }
  MixedBatch view() { return {pixels, 2, sizes, targets, 4}; }
};
constexpr size_t kBegin[] = {0, 12, 16, 28, 32};

TEST(Mix, mixup_adds_up_images_of_a_size_in_pairs_and_what_they_show) {
  const Batch before;
  Batch batch;
  mix({.kind = Mixing::Kind::mixup, .share = 0.75}, batch.view());
  const size_t partner[] = {4, 3, 2, 1, 0};
  for (size_t i = 0; i < 5; ++i) {
    const auto count = static_cast<size_t>(before.sizes[i].height * before.sizes[i].width * 2);
    for (size_t p = 0; p < count; ++p) {
      EXPECT_FLOAT_EQ(
          batch.pixels[kBegin[i] + p],
          0.75f * before.pixels[kBegin[i] + p] + 0.25f * before.pixels[kBegin[partner[i]] + p]);
    }
    for (size_t c = 0; c < 4; ++c) {
      EXPECT_FLOAT_EQ(batch.targets[4 * i + c], 0.75f * before.targets[4 * i + c] +
                                                    0.25f * before.targets[4 * partner[i] + c]);
    }
  }
}

TEST(Mix, cutmix_takes_the_box_from_the_partner_and_weighs_by_its_area) {
  const Batch before;
  Batch batch;
  // 1 - share of 8/9: an edge of 0.94, 1 and 2 pixels; half of them, rounded down, on each side.
  const Mixing how = {.kind = Mixing::Kind::cutmix, .share = 1.0 / 9, .row = 0.6, .column = 0.9};
  const PixelBox box = how.box({2, 3});
  EXPECT_EQ(box.height * box.width, 0);
  const Mixing whole = {.kind = Mixing::Kind::cutmix, .share = 0, .row = 0.6, .column = 0.9};
  const PixelBox part = whole.box({2, 3});  // middle [1, 2], 1 pixel to each side, cut off right
  EXPECT_EQ(part.top, 0);
  EXPECT_EQ(part.height, 2);
  EXPECT_EQ(part.left, 1);
  EXPECT_EQ(part.width, 2);
  EXPECT_DOUBLE_EQ(whole.kept({2, 3}), 1 - 4.0 / 6);
  mix(whole, batch.view());
  for (size_t y = 0; y < 2; ++y) {
    for (size_t x = 0; x < 3; ++x) {
      const size_t at = 2 * (3 * y + x);
      EXPECT_EQ(batch.pixels[at], before.pixels[(x >= 1 ? kBegin[4] : 0) + at]);
      EXPECT_EQ(batch.pixels[kBegin[4] + at], before.pixels[(x >= 1 ? 0 : kBegin[4]) + at]);
    }
  }
  EXPECT_FLOAT_EQ(batch.targets[0], 1);  // images 0 and 4 are of class 0 both
  EXPECT_FLOAT_EQ(batch.targets[4 + 1],
                  1);  // a box of [1, 2] pixels has half a pixel's height: none
  for (size_t p = 0; p < 12; ++p) EXPECT_EQ(batch.pixels[16 + p], before.pixels[16 + p]);
}

TEST(Mix, targets_still_sum_to_one_and_bits_are_the_same_for_any_threads) {
  const int threads_before = num_threads();
  for (const auto kind : {Mixing::Kind::mixup, Mixing::Kind::cutmix}) {
    const Mixing how = {.kind = kind, .share = 0.3, .row = 0.2, .column = 0.7};
    std::vector<std::vector<float>> results;
    for (const int threads : {1, 4}) {
      set_num_threads(threads);
      std::vector<ImageSize> sizes(50, {16, 12});
      std::vector<float> pixels(50 * 16 * 12 * 3), targets(50 * 7);
      RngStream random(make_key(1, 1, 1));
      for (float& x : pixels) x = random.uniform();
      for (size_t i = 0; i < 50; ++i) targets[7 * i + i % 7] = 1;
      mix(how, {pixels, 3, sizes, targets, 7});
      for (size_t i = 0; i < 50; ++i) {
        EXPECT_NEAR(std::accumulate(&targets[7 * i], &targets[7 * i] + 7, 0.0), 1, 1e-6);
      }
      pixels.insert(pixels.end(), targets.begin(), targets.end());
      results.push_back(pixels);
    }
    EXPECT_EQ(results[0], results[1]);
  }
  set_num_threads(threads_before);
}

// Images of one pixel, whose level is the sample, and its class.
std::vector<float> mixed_levels(const std::vector<int64_t>& samples, const Mixing& how) {
  std::vector<float> levels(samples.begin(), samples.end()), targets = levels;
  const std::vector<ImageSize> sizes(samples.size(), {1, 1});
  mix(how, {.pixels = levels, .channels = 1, .sizes = sizes, .targets = targets, .classes = 1});
  EXPECT_EQ(targets, levels);
  return levels;
}

TEST(Mix, parts_of_a_batch_are_mixed_as_the_whole_is) {
  const Mixing how{.kind = Mixing::Kind::mixup, .share = 0.75};
  for (const int64_t n : {1, 2, 7, 8}) {
    std::vector<int64_t> samples(static_cast<size_t>(n));
    std::iota(samples.begin(), samples.end(), 20);
    const std::vector<float> whole = mixed_levels(samples, how);
    for (int64_t parts = 1; parts <= n + 1; ++parts) {
      const std::vector<std::vector<int64_t>> split = split_for_mixing(samples, parts);
      EXPECT_EQ(std::ssize(split), std::min(parts, (n + 1) / 2));
      int64_t seen = 0;
      for (const std::vector<int64_t>& part : split) {
        const std::vector<float> levels = mixed_levels(part, how);
        for (size_t i = 0; i < part.size(); ++i, ++seen) {
          EXPECT_EQ(levels[i], whole.at(static_cast<size_t>(part[i] - 20)))
              << part[i] << " of " << n << " in " << parts;
        }
      }
      EXPECT_EQ(seen, n);
    }
    EXPECT_EQ(split_for_mixing(samples, 1)[0], samples);
  }
}

TEST(Mix, spans_of_other_lengths_are_refused) {
  Batch batch;
  batch.pixels.pop_back();
  expect_error(ErrorKind::shape, {"43", "44"}, [&] { mix({}, batch.view()); });
  batch.pixels.push_back(0);
  batch.targets.pop_back();
  expect_error(ErrorKind::shape, {"19", "20"}, [&] { mix({}, batch.view()); });
}

TEST(DrawMixing, kinds_are_chosen_as_often_as_the_fields_say) {
  Augmentation how;
  const auto counts = [&] {
    std::array<int, 3> seen = {};
    for (uint64_t batch = 0; batch < 4000; ++batch) {
      ++seen[static_cast<size_t>(draw_mixing(how, make_key(1, batch, 2)).kind)];
    }
    return seen;
  };
  EXPECT_EQ(counts()[0], 4000);
  how.mixup_alpha = 0.8;
  EXPECT_EQ(counts()[1], 4000);
  how.cutmix_alpha = 1;
  EXPECT_NEAR(counts()[1], 2000, 4 * std::sqrt(1000));
  how.mix_probability = 0.5;
  EXPECT_NEAR(counts()[0], 2000, 4 * std::sqrt(1000));
  EXPECT_NEAR(counts()[2], 1000, 4 * std::sqrt(750));
}

}  // namespace
}  // namespace heddle
