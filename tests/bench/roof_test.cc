// What the limits count: matrix products against counts by hand, operations of a step, and weights
// read.
#include "heddle/bench/roof.h"

#include <gtest/gtest.h>

#include "heddle/bench/case.h"
#include "heddle/kernels/kernels.h"

namespace heddle::bench {
namespace {

TransformerConfig tiny() {
  TransformerConfig c;
  c.vocab_size = 10000, c.d_model = 128;
  c.encoder_layers = c.decoder_layers = 4;
  c.encoder_ffn_dim = c.decoder_ffn_dim = 256;
  return c;
}

// Multiplications of a row, by hand. Encoder layer: q, k, v and out 4 * 128 * 128 = 65,536, feed
// forward 2 * 128 * 256 = 65,536; 4 layers 524,288; with cross keys and values (2 * 128 * 128, 4
// layers: 131,072) a source row takes 655,360. Decoder layer: q, k, v, out, cross q, cross out
// 6 * 128 * 128 = 98,304, feed forward 65,536; 4 layers 655,360; the output 128 * 10,000.
constexpr double kSourceRow = 655360, kTargetRow = 655360 + 1280000;

TEST(Products, training_of_the_tiny_size_equals_a_count_by_hand) {
  // Forward and two backward products, a multiplication and an addition each: 6.
  EXPECT_EQ(training_products(tiny(), 2600, 2500, DType::f32).flops(),
            6 * (2600 * kSourceRow + 2500 * kTargetRow));
}

TEST(Products, translation_counts_the_first_step_without_the_beam) {
  const Products p = translation_products(
      tiny(), {.source_rows = 100, .sentences = 8, .beam = 4, .steps = 20}, DType::bf16);
  EXPECT_EQ(p.flops(), 2 * (100 * kSourceRow + (8 + 19 * 32) * kTargetRow));
}

TEST(Operations, are_those_of_products_and_of_attention) {
  const Tensor a = some_numbers({5, 7}, DType::f32), b = some_numbers({7, 3}, DType::f32);
  const Tensor c = Tensor::empty({5, 3}, DType::f32);
  const auto multiply = [&] { kernels().gemm({.a = a.rows(), .b = b.rows(), .c = c.rows()}); };
  EXPECT_EQ(operations_of(multiply), 2 * 5 * 7 * 3);
  EXPECT_EQ(operations_of([] {}), 0);
  // An update multiplies in attention too, which the products of linear layers leave out.
  const BenchWorkload w = find_case("train-tiny").make({.precision = {}, .batch = 2});
  EXPECT_GT(operations_of(w.step), 1.001 * w.products.flops());
  EXPECT_LT(operations_of(w.step), 1.1 * w.products.flops());
}

TEST(Operations, more_of_them_take_longer_in_registers) {
  for (const Precision& p : {Precision{}, Precision{DType::bf16}, Precision{DType::f32, true}}) {
    const double one = seconds_in_registers(1e9, p), thousand = seconds_in_registers(1e12, p);
    if (one == 0) continue;  // such a CPU has no loop
    EXPECT_GT(one, 1e-6);
    EXPECT_GT(thousand, 100 * one);
  }
}

TEST(Products, train_tiny_counts_the_rows_of_its_batch) {
  const BenchWorkload w = find_case("train-tiny").make({});
  EXPECT_EQ(w.batch, 128);
  EXPECT_GE(w.units, 128 * 16);
  EXPECT_LE(w.units, 128 * 24);
  const double source_rows = (w.products.flops() / 6 - w.units * kTargetRow) / kSourceRow;
  EXPECT_EQ(source_rows, static_cast<double>(static_cast<int64_t>(source_rows)));
  EXPECT_GE(source_rows, 128 * 16);
  EXPECT_LE(source_rows, 128 * 24);
}

TEST(Products, attention_counts_seven_squares_of_its_tokens) {
  // Width 512 over all heads; a multiplication and an addition each.
  const double square = 16384.0 * 16384.0;
  EXPECT_EQ(find_case("attention-16k").make({}).products.flops(), 7 * 2 * square * 512);
}

TEST(Products, equal_shapes_are_one_product) {
  Products p(DType::f32, true);
  p.linear(10, 4, 6, 2);
  p.linear(10, 4, 6);
  ASSERT_EQ(p.all().size(), 3u);  // forward, to the input, to the weight
  for (const MatrixProduct& each : p.all()) EXPECT_EQ(each.count, 3);
  EXPECT_EQ(p.flops(), 3 * 3 * 2 * 10 * 4 * 6);
}

TEST(Products, steps_multiply_those_that_have_not_ended) {
  const Segments sequences = Segments::from_lengths(std::vector<int64_t>{3, 1, 3});
  Products p(DType::bf16, false);
  p.steps(sequences, 4, 6);  // 3, 2 and 2 rows
  ASSERT_EQ(p.all().size(), 2u);
  EXPECT_EQ(p.all()[0].m, 3);
  EXPECT_EQ(p.all()[1].m, 2);
  EXPECT_EQ(p.all()[1].count, 2);
  Products trained(DType::bf16, true);
  trained.steps(sequences, 4, 6, 1);  // two of 2 rows and back, and the weight by all 7
  EXPECT_EQ(trained.flops(), 2 * 4 * 6 * (2 * 4 + 7));
}

TEST(Products, chunks_of_logits_cover_all_rows) {
  Products p(DType::bf16, true);
  p.logits(1300, 64, 10000);
  EXPECT_EQ(p.flops(), 6.0 * 1300 * 64 * 10000);
  for (const MatrixProduct& each : p.all()) EXPECT_LE(each.transpose_a ? each.k : each.m, 512);
}

TEST(Products, each_takes_time) {
  Products p(DType::f32, true);
  EXPECT_EQ(seconds_of_products(p), 0);
  p.linear(64, 64, 64);
  EXPECT_GT(seconds_of_products(p), 0);
}

TEST(Reads, decoding_reads_the_decoder_once_a_token) {
  // By hand as above: the weights of a row's products.
  const Products p = translation_products(
      tiny(), {.source_rows = 13, .sentences = 1, .beam = 1, .steps = 20}, DType::bf16);
  EXPECT_EQ(p.weights_read(), kSourceRow + 20 * kTargetRow);
}

TEST(Reads, time_grows_with_the_bytes) {
  const double one = seconds_of_reads(1 << 20, 1 << 20);
  EXPECT_GT(one, 0);
  EXPECT_GT(seconds_of_reads(int64_t{1} << 30, 1 << 20), one);
}

TEST(Timing, warm_up_is_not_counted_and_three_are_timed_at_least) {
  int calls = 0;
  EXPECT_EQ(time_repeatedly([&] { ++calls; }, 0).repetitions, 3);
  EXPECT_EQ(calls, 5);
}

}  // namespace
}  // namespace heddle::bench
