// What the language model's roof counts, against counts by hand.
#include <gtest/gtest.h>

#include "heddle/bench/case.h"

namespace heddle::bench {
namespace {

// Multiplications of a row of the 4 blocks of width 128: 4 * 12 * 128 * 128, and of the output.
constexpr double kBlocks = 4.0 * 12 * 128 * 128, kOutput = 128.0 * 65;

TEST(LanguageCases, train_chargpt_counts_every_product_of_its_batch) {
  const BenchWorkload w = find_case("train-chargpt").make({});
  EXPECT_EQ(w.units, 12 * 64);
  EXPECT_EQ(w.batch, 12);
  // nanoGPT's count without positions is 0.80 million.
  EXPECT_EQ(w.parameters, 4 * (12 * 128 * 128 + 13 * 128) + (65 + 64 + 2) * 128);
  EXPECT_EQ(w.products.flops(), 6 * 12 * 64 * (kBlocks + kOutput));
}

TEST(LanguageCases, train_steps_counts_updates) {
  const BenchWorkload w = find_case("train-steps").make({.batch = 64});
  EXPECT_EQ(find_case("train-steps").unit, "updates/s");
  EXPECT_EQ(w.units, 1);
  EXPECT_EQ(w.products.flops(), 6 * 64 * 16 * (2.0 * 12 * 64 * 64 + 64 * 65));
  w.step();
}

TEST(LanguageCases, batch_is_that_of_the_options) {
  const BenchWorkload w = find_case("train-chargpt").make({.batch = 3});
  EXPECT_EQ(w.units, 3 * 64);
  w.step();
}

}  // namespace
}  // namespace heddle::bench
