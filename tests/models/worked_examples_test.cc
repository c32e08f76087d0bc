// Worked examples of the literature with the numbers that must come out.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "heddle/models/transformer.h"
#include "heddle/nn/position.h"
#include "heddle/ops/attention.h"
#include "heddle/ops/loss.h"
#include "heddle/ops/norm.h"
#include "heddle/ops/reduce.h"
#include "heddle/train/optimizer.h"

namespace heddle {
namespace {

Tensor matrix(const std::vector<std::vector<float>>& rows) {
  std::vector<float> values;
  for (const auto& row : rows) values.insert(values.end(), row.begin(), row.end());
  return Tensor::from(values,
                      {static_cast<int64_t>(rows.size()), static_cast<int64_t>(rows[0].size())});
}

void expect_near(const std::vector<float>& actual, const std::vector<double>& expected,
                 double tolerance) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) EXPECT_NEAR(actual[i], expected[i], tolerance) << i;
}

// One query and two keys of width 64 whose products are 112 and 96.
struct TwoKeys {
  Tensor q = Tensor::full({1, 64}, 1.0f);
  Tensor k = Tensor::empty({2, 64}, DType::f32);
  Segments one = Segments::uniform(1, 1), two = Segments::uniform(1, 2);

  TwoKeys() {
    std::fill_n(k.data<float>(), 64, 112.0f / 64);
    std::fill_n(k.data<float>() + 64, 64, 96.0f / 64);
  }
  std::vector<float> weights(float scale) const {
    return attention_weights(q, k, one, two, {.scale = scale}, 0, 0).to_floats();
  }
};

TEST(AttentionExample, scores_112_and_96_give_weights_088_and_012) {
  expect_near(softmax(matrix({{112.0f / 8, 96.0f / 8}})).to_floats(), {0.8808, 0.1192}, 5e-5);
  expect_near(TwoKeys().weights(0), {0.8808, 0.1192}, 5e-5);
}

TEST(AttentionExample, output_is_088_of_the_first_value_and_012_of_the_second) {
  const TwoKeys t;
  Tensor v = Tensor::zeros({2, 64}, DType::f32);
  v.data<float>()[0] = 1;        // V1 = (1, 0, ..)
  v.data<float>()[64 + 1] = 10;  // V2 = (0, 10, ..)
  const std::vector<float> y = attention(t.q, t.k, v, t.one, t.two, {}).to_floats();
  EXPECT_NEAR(y[0], 0.8808, 5e-5);
  EXPECT_NEAR(y[1], 1.1920, 5e-4);
  EXPECT_EQ(y[2], 0);
}

TEST(AttentionExample, without_scaling_the_first_weight_is_1_less_1e_7) {
  const std::vector<float> w = TwoKeys().weights(1);
  EXPECT_NEAR(w[1], 1.1254e-7, 1e-11);          // e^-16 / (1 + e^-16)
  EXPECT_NEAR(1.0 - w[0], 1.1254e-7, 0x1p-24);  // an f32 below 1 is a multiple of 2^-24
  EXPECT_LT(w[0], 1);
}

// -(q - k)^2 / 2 is the product of (q, 1) and (k, -k^2 / 2), less q^2 / 2, which all keys share.
TEST(AttentionExample, gaussian_kernel_looks_up_the_nearest_of_160_166_173) {
  const std::vector<float> keys = {160, 166, 173};
  std::vector<std::vector<float>> rows;
  for (float k : keys) rows.push_back({k, -k * k / 2});
  const Tensor v = matrix({{60, 0}, {64, 0}, {70, 0}});
  const Segments one = Segments::uniform(1, 1), three = Segments::uniform(1, 3);
  const AttentionOptions plain{.scale = 1};
  const Tensor q = matrix({{162, 1}});
  expect_near(attention_weights(q, matrix(rows), one, three, plain, 0, 0).to_floats(),
              {0.9975, 0.0025, 0}, 5e-5);
  EXPECT_NEAR(attention(q, matrix(rows), v, one, three, plain).to_floats()[0],
              0.99753 * 60 + 0.00247 * 64, 1e-3);
}

TEST(AttentionExample, raw_product_of_162_with_160_166_173_picks_173) {
  const Segments one = Segments::uniform(1, 1), three = Segments::uniform(1, 3);
  expect_near(attention_weights(matrix({{162}}), matrix({{160}, {166}, {173}}), one, three,
                                {.scale = 1}, 0, 0)
                  .to_floats(),
              {0, 0, 1}, 0);
}

TEST(PositionExample, table_of_width_4_begins_as_in_the_literature) {
  expect_near(nn::sinusoidal_table(3, 4).to_floats(),
              {0, 1, 0, 1, .8415, .5403, .0100, .99995, .9093, -.4161, .0200, .9998}, 5e-5);
}

TEST(PositionExample, position_1_of_width_8_has_four_frequencies) {
  const std::vector<float> table = nn::sinusoidal_table(2, 8).to_floats();
  expect_near({table.begin() + 8, table.end()}, {.8415, .5403, .0998, .9950, .0100, 1, .0010, 1},
              5.1e-5);  // four digits; cos(0.01) = 0.99995
}

TEST(PositionExample, position_further_by_k_is_a_rotation_that_k_alone_decides) {
  const int64_t width = 8, k = 5;
  const std::vector<float> table = nn::sinusoidal_table(40, width).to_floats();
  for (int64_t pos = 0; pos + k < 40; ++pos) {
    for (int64_t i = 0; i < width; i += 2) {
      const double angle = k * std::pow(10000.0, -static_cast<double>(i) / width);
      const double s = table[pos * width + i], c = table[pos * width + i + 1];
      EXPECT_NEAR(table[(pos + k) * width + i], s * std::cos(angle) + c * std::sin(angle), 3e-7);
      EXPECT_NEAR(table[(pos + k) * width + i + 1], c * std::cos(angle) - s * std::sin(angle),
                  3e-7);
    }
  }
}

TEST(LayerNormExample, small_and_huge_numbers_in_one_row_keep_six_digits) {
  const Tensor one = Tensor::full({3}, 1), zero = Tensor::zeros({3}, DType::f32);
  const Tensor x = matrix({{1, 2, 3}, {0.001f, 10000.103f, -9999999.113f}});
  const std::vector<float> y = layer_norm(x, one, zero, 1e-5f).to_floats();
  expect_near({y.begin() + 3, y.end()}, {0.706046, 0.708167, -1.414213}, 1e-6);
}

TEST(LayerNormExample, a_row_is_the_same_alone_and_in_any_batch) {
  const Tensor gain = Tensor::full({3}, 1.5f), shift = Tensor::full({3}, -0.25f);
  const std::vector<float> row = {0.001f, 10000.103f, -9999999.113f};
  const std::vector<float> alone = layer_norm(matrix({row}), gain, shift, 1e-5f).to_floats();
  const std::vector<float> many =
      layer_norm(matrix({{1, 2, 3}, {0, 0, 0}, row, {7, -7, 5}}), gain, shift, 1e-5f).to_floats();
  EXPECT_EQ(std::vector<float>(many.begin() + 6, many.begin() + 9), alone);
}

// --- "I am a student" under the causal mask ----------------------------------------------------

// Numbers that differ in every row and column.
Tensor varied(int64_t rows, int64_t width, float phase) {
  Tensor x = Tensor::empty({rows, width}, DType::f32);
  for (int64_t i = 0; i < rows * width; ++i) {
    x.data<float>()[i] = std::sin(phase + 1.7f * static_cast<float>(i));
  }
  return x;
}

TEST(CausalExample, weights_of_i_am_a_student_are_a_lower_triangle) {
  const Segments words = Segments::uniform(1, 4);
  const std::vector<float> w = attention_weights(varied(4, 8, 0), varied(4, 8, 1), words, words,
                                                 {.heads = 2, .causal = true}, 0, 1)
                                   .to_floats();
  for (int i = 0; i < 4; ++i) {
    float total = 0;
    for (int j = 0; j < 4; ++j) {
      EXPECT_EQ(w[4 * i + j] > 0, j <= i) << i << " and " << j;
      total += w[4 * i + j];
    }
    EXPECT_NEAR(total, 1, 1e-6);
  }
  EXPECT_EQ(w[0], 1);  // "I" sees itself alone
}

TEST(CausalExample, am_is_the_same_bits_whatever_follows_it) {
  const Segments words = Segments::uniform(1, 4);
  const Tensor q = varied(4, 8, 0), k = varied(4, 8, 1), v = varied(4, 8, 2);
  const AttentionOptions options{.heads = 2, .causal = true};
  const std::vector<float> before = attention(q, k, v, words, words, options).to_floats();
  for (const Tensor& x : {q, k, v}) std::fill_n(x.data<float>() + 16, 16, 40.0f);
  const std::vector<float> after = attention(q, k, v, words, words, options).to_floats();
  EXPECT_EQ(std::vector<float>(before.begin(), before.begin() + 16),
            std::vector<float>(after.begin(), after.begin() + 16));
  EXPECT_NE(before, after);
}

// --- the model ---------------------------------------------------------------------------------

TransformerConfig small_config() {
  TransformerConfig c;
  c.vocab_size = 12;
  c.d_model = 32;
  c.encoder_layers = c.decoder_layers = 2;
  c.encoder_attention_heads = c.decoder_attention_heads = 4;
  c.encoder_ffn_dim = c.decoder_ffn_dim = 64;
  c.dropout = c.embedding_dropout = 0;
  return c;
}

struct Model {
  nn::Parameters parameters{7};
  Transformer transformer;
  explicit Model(const TransformerConfig& c) : transformer(nn::Scope(parameters), c) {}

  std::vector<float> encode(const std::vector<int32_t>& ids) const {
    const NoGrad no_grad;
    const Segments words = Segments::uniform(1, static_cast<int64_t>(ids.size()));
    return transformer.encode(nn::TokenRows{ids, &words, nullptr}, {}).to_floats();
  }
};

// The largest difference between `a` and the rows of `b` in the order `order`.
double distance(const std::vector<float>& a, const std::vector<float>& b,
                const std::vector<int>& order, int64_t width) {
  double largest = 0;
  for (size_t row = 0; row < order.size(); ++row) {
    for (int64_t i = 0; i < width; ++i) {
      const double apart = std::abs(a[row * width + i] - b[order[row] * width + i]);
      if (std::isnan(apart)) return apart;
      largest = std::max(largest, apart);
    }
  }
  return largest;
}

TEST(OrderExample, cat_chases_dog_and_dog_chases_cat_are_alike_only_without_positions) {
  const std::vector<int32_t> cat_chases_dog = {4, 5, 6}, dog_chases_cat = {6, 5, 4};
  TransformerConfig c = small_config();
  c.position_embedding_type = "none";
  const Model without(c);
  // The keys are summed in another order: f32 rounding of two blocks, values near 1.
  EXPECT_LT(distance(without.encode(cat_chases_dog), without.encode(dog_chases_cat), {2, 1, 0}, 32),
            2e-6);
  EXPECT_GT(distance(without.encode(cat_chases_dog), without.encode(dog_chases_cat), {0, 1, 2}, 32),
            0.1);
  for (const char* positions : {"sinusoidal", "learned"}) {
    c.position_embedding_type = positions;
    const Model with(c);
    EXPECT_GT(distance(with.encode(cat_chases_dog), with.encode(dog_chases_cat), {2, 1, 0}, 32),
              0.01)
        << positions;
  }
}

TEST(OrderExample, a_later_target_word_changes_no_earlier_logit) {
  const Model m(small_config());
  const NoGrad no_grad;
  const std::vector<int32_t> source = {4, 5, 3};
  const Segments three = Segments::uniform(1, 3), four = Segments::uniform(1, 4);
  const Tensor memory = m.transformer.encode(nn::TokenRows{source, &three, nullptr}, {});
  const auto logits = [&](const std::vector<int32_t>& target) {
    return m.transformer
        .output()(m.transformer.decode({target, &four, nullptr}, memory, three, {}), {})
        .to_floats();
  };
  const std::vector<float> a = logits({2, 6, 7, 8}), b = logits({2, 6, 7, 9});
  const int64_t earlier = 3 * 12;
  EXPECT_EQ(std::vector<float>(a.begin(), a.begin() + earlier),
            std::vector<float>(b.begin(), b.begin() + earlier));
  EXPECT_NE(a, b);
}

// Scalars of all tensors of a checkpoint whose name holds `word`.
int64_t count(const nn::Parameters& parameters, const std::string& word = "") {
  int64_t n = 0;
  parameters.for_each_tensor([&](const std::string& name, const Shape& shape, const float*) {
    if (name.find(word) != std::string::npos) n += shape.elements();
  });
  return n;
}

TEST(SizeExample, width_300_with_4_or_10_heads_has_360000_attention_weights) {
  for (int64_t heads : {4, 10}) {
    for (bool bias : {false, true}) {
      TransformerConfig c = small_config();
      c.d_model = 300;
      c.encoder_attention_heads = c.decoder_attention_heads = heads;
      c.projection_bias = bias;
      const Model m(c);
      EXPECT_EQ(count(m.parameters, "encoder.layers.0.self_attn."), bias ? 361'200 : 360'000);
      EXPECT_EQ(count(m.parameters, "decoder.layers.1.encoder_attn."), bias ? 361'200 : 360'000);
    }
  }
}

TEST(SizeExample, width_300_with_8_heads_is_refused_by_name) {
  TransformerConfig c = small_config();
  c.d_model = 300;
  c.decoder_attention_heads = 10;
  c.encoder_attention_heads = 8;
  nn::Parameters parameters(1);
  try {
    const Transformer model(nn::Scope(parameters), c);
    FAIL() << "accepted";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::data);
    EXPECT_NE(std::string(e.what()).find("300"), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find("8 heads"), std::string::npos) << e.what();
  }
}

TransformerConfig base_config() {
  TransformerConfig c;  // 6 + 6 layers, 512, 2048, 8 heads: the defaults
  c.vocab_size = 37'000;
  return c;
}

TEST(SizeExample, base_has_63082496_parameters) {
  const Model m(base_config());
  EXPECT_EQ(m.parameters.elements(), 63'082'496);
  EXPECT_EQ(count(m.parameters), 63'082'496);
  EXPECT_EQ(count(m.parameters, "encoder.layers.3."), 3'152'384);
  EXPECT_EQ(count(m.parameters, "decoder.layers.3."), 4'204'032);
}

// One layer of each kind is built, five more are added by arithmetic: 214 million f32 are 857 MB.
TEST(SizeExample, big_has_214245376_parameters) {
  TransformerConfig c = base_config();
  c.d_model = 1024;
  c.encoder_ffn_dim = c.decoder_ffn_dim = 4096;
  c.encoder_attention_heads = c.decoder_attention_heads = 16;
  c.encoder_layers = c.decoder_layers = 1;
  const Model m(c);
  EXPECT_EQ(count(m.parameters) + 5 * count(m.parameters, ".layers.0."), 214'245'376);
}

// --- training ----------------------------------------------------------------------------------

// (a, am, i, thanks, student, <eos>): the gradient of the loss is softmax - smoothed target.
TEST(SmoothingExample, target_am_among_six_words_becomes_9167_and_0167) {
  Leaf leaf{"logits", {}};
  const Tensor logits = Tensor::zeros({1, 6}, DType::f32).with_leaf(&leaf);
  const std::vector<int32_t> am = {1};
  backward(cross_entropy(logits, am, {.smoothing = 0.1f}).loss);
  std::vector<float> target = leaf.grad.to_floats();
  for (float& t : target) t = 1.0f / 6 - t;
  expect_near(target, {.0167, .9167, .0167, .0167, .0167, .0167}, 5e-5);
}

TEST(ScheduleExample, rate_for_width_512_and_4000_updates_of_warm_up) {
  const train::ScheduleOptions noam{.kind = "noam", .warmup = 4000, .d_model = 512};
  EXPECT_NEAR(train::learning_rate(noam, 1), 1.7469e-7, 5e-12);
  EXPECT_NEAR(train::learning_rate(noam, 4000), 6.9877e-4, 5e-9);
  EXPECT_NEAR(train::learning_rate(noam, 16000), 6.9877e-4 / 2, 5e-9);
  EXPECT_GT(train::learning_rate(noam, 4000), train::learning_rate(noam, 3999));
  EXPECT_GT(train::learning_rate(noam, 4000), train::learning_rate(noam, 4001));
}

// "je suis étudiant" over (je, suis, étudiant) to "i am a student": before training no word stands
// out, after 100 updates each right one has nearly all of the probability.
TEST(TrainingExample, je_suis_etudiant_is_learnt_in_a_hundred_updates) {
  Model m(small_config());
  const std::vector<int32_t> source = {4, 5, 6, 3}, target = {2, 7, 8, 9, 10},
                             due = {7, 8, 9, 10, 3};
  const Segments four = Segments::uniform(1, 4), five = Segments::uniform(1, 5);
  const auto decoded = [&] {
    return m.transformer.decode({target, &five, nullptr},
                                m.transformer.encode(nn::TokenRows{source, &four, nullptr}, {}),
                                four, {});
  };
  const auto least_likely = [&] {  // of the five right words, each under its own distribution
    const NoGrad no_grad;
    const std::vector<float> p = softmax(m.transformer.output()(decoded(), {})).to_floats();
    float least = 1;
    for (size_t i = 0; i < due.size(); ++i) least = std::min(least, p[i * 12 + due[i]]);
    return least;
  };
  EXPECT_LT(least_likely(), 0.3);
  train::Optimizer adam(m.parameters, {});
  for (int update = 1; update <= 100; ++update) {
    const CrossEntropy loss =
        linear_cross_entropy(decoded(), m.transformer.output().weight({}), {}, due, {});
    backward(loss.loss);
    adam.step(3e-3, 0.2);
  }
  EXPECT_GT(least_likely(), 0.98);
}

}  // namespace
}  // namespace heddle
