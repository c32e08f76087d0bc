// What the roofs of the recurrent translator count, against counts by hand; and that it runs.
#include <gtest/gtest.h>

#include "heddle/base/profile.h"
#include "heddle/bench/case.h"

namespace heddle::bench {
namespace {

// Multiplications of a row, by hand. Encoder, each of two ways: 256 * 1,024 of tokens and then
// 512 * 1,024 of the layer below; of states 256 * 1,024 in both layers, but at the first token,
// which has none before it. Keys 512 * 256.
constexpr double kSourceRow = 2.0 * (256 + 512) * 1024 + 512 * 256;
constexpr double kSourceState = 4.0 * 256 * 1024;
constexpr double kBridge = 512.0 * 1024;
// Decoder: query 512 * 256, context and state (512 + 512) * 2,048, token 256 * 2,048, read-out
// 1,280 * 256, output 256 * 6,000.
constexpr double kTargetRow =
    512.0 * 256 + 1024.0 * 2048 + 256.0 * 2048 + 1280.0 * 256 + 256.0 * 6000;

// Weights and biases by hand, two biases a cell.
constexpr int64_t kParameters = 6000 * 256 + 6000 +                    // tied, bias
                                2 * (1024 * (256 + 256) + 2048) +      // first layer
                                2 * (1024 * (512 + 256) + 2048) +      // second
                                2048 * (256 + 512 + 512) + 4096 +      // decoder
                                512 * 256 + 256 + 512 * 256 + 256 +    // key, query, v
                                512 * 1024 + 1024 + 1280 * 256 + 256;  // bridge, readout

TEST(LstmCases, translation_counts_every_product_of_its_batch) {
  const BenchWorkload w = find_case("translate-lstm").make({});
  EXPECT_EQ(w.batch, 64);
  EXPECT_EQ(w.units, 64 * 20);
  EXPECT_EQ(w.parameters, kParameters);
  EXPECT_EQ(w.bytes_read, 0);
  // The rows of the sources are what is not by hand: all but the first of each have a state.
  const double of_sources = w.products.flops() / 2 - 64 * (20 * kTargetRow + kBridge);
  const double rows = (of_sources + 64 * kSourceState) / (kSourceRow + kSourceState);
  EXPECT_EQ(rows, static_cast<double>(static_cast<int64_t>(rows)));
  EXPECT_GE(rows, 64 * 9);
  EXPECT_LE(rows, 64 * 25);
}

TEST(LstmCases, one_sentence_reads_weights_of_states_at_every_step) {
  const BenchWorkload w = find_case("translate-lstm").make({.batch = 1});
  // bf16 or f32, as options say: f32 here.
  const double scalars = static_cast<double>(w.bytes_read) / 4;
  const double states = scalars - 20 * kTargetRow - kBridge - kSourceRow;
  const double steps = states / kSourceState;
  EXPECT_EQ(steps, static_cast<double>(static_cast<int64_t>(steps)));
  EXPECT_GE(steps, 8);
  EXPECT_LE(steps, 24);
}

TEST(LstmCases, training_counts_every_product_of_its_batch) {
  const BenchWorkload w = find_case("train-lstm").make({.batch = 1});
  EXPECT_EQ(w.parameters, kParameters);
  EXPECT_GE(w.units, 16);
  EXPECT_LE(w.units, 24);
  // Three products each; the gradient of a state's weights is over all rows, the first too.
  const double rest = w.products.flops() / 2 - 3 * (w.units * kTargetRow + kBridge);
  const double rows = (rest + 2 * kSourceState) / (3 * (kSourceRow + kSourceState));
  EXPECT_EQ(rows, static_cast<double>(static_cast<int64_t>(rows)));
  EXPECT_GE(rows, 16);
  EXPECT_LE(rows, 24);
}

// Operations of kernels in one repetition.
double operations_of(const BenchWorkload& w) {
  start_profile(0);
  w.step();
  const Profile profile = stop_profile().value();
  double operations = 0;
  for (const Profile::Row& row : profile.rows) operations += row.totals.work.flops;
  return operations;
}

TEST(LstmCases, both_do_the_products_that_they_count_in_every_dtype) {
  for (const char* name : {"train-lstm", "translate-lstm"}) {
    const BenchCase& c = find_case(name);
    ASSERT_GE(c.dtypes.size(), 2U);
    for (const std::string& dtype : c.dtypes) {
      const BenchWorkload w = c.make({.precision = options_of_run(c, dtype).precision, .batch = 2});
      EXPECT_EQ(operations_of(w), w.products.flops()) << name << ", " << dtype;
    }
  }
}

}  // namespace
}  // namespace heddle::bench
