// The attention layer on its own against a loop over heads in float64: all sizes different.
#include "heddle/nn/attention.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "heddle/autograd/tape.h"
#include "heddle/ops/reduce.h"
#include "tests/base/temporary.h"
#include "tests/nn/slopes.h"

namespace heddle::nn {
namespace {

constexpr int64_t kQueries = 4, kKeys = 6, kHeads = 2, kHeadWidth = 3;
constexpr int64_t kQueryWidth = 5, kKeyWidth = 7, kValueWidth = 8, kOut = 9;

using Matrix = std::vector<std::vector<double>>;

Matrix matrix(const Tensor& x) {
  const auto values = x.to_floats();
  Matrix m(x.size(0));
  for (int64_t i = 0; i < x.size(0); ++i) {
    m[i].assign(values.begin() + i * x.size(1), values.begin() + (i + 1) * x.size(1));
  }
  return m;
}

class GeneralAttentionTest : public ::testing::TestWithParam<std::string> {
 protected:
  GeneralAttentionTest() {
    for (auto& p : parameters.all()) {  // biases begin at 0: give them values
      for (int64_t i = 0; i < p->elements(); ++i) {
        p->value().data<float>()[i] += 0.1f * static_cast<float>(i % 5);
      }
      p->changed(true);
    }
  }

  Parameter& named(const std::string& name) {
    for (auto& p : parameters.all()) {
      if (p->name() == name) return *p;
    }
    throw std::runtime_error(name);
  }

  Matrix project(const Tensor& x, const std::string& name) {
    const Matrix in = matrix(x), w = matrix(named(name + ".weight").value());
    const auto b = named(name + ".bias").value().to_floats();
    Matrix y(in.size(), std::vector<double>(w.size()));
    for (size_t i = 0; i < in.size(); ++i) {
      for (size_t o = 0; o < w.size(); ++o) {
        y[i][o] = b[o];
        for (size_t c = 0; c < in[i].size(); ++c) y[i][o] += in[i][c] * w[o][c];
      }
    }
    return y;
  }

  double score(const std::vector<double>& q, const std::vector<double>& k, int64_t h) {
    double sum = 0;
    const bool has_weights = GetParam() == "additive" || GetParam() == "linear";
    const auto w = has_weights ? matrix(named("score.weight").value())[h] : std::vector<double>();
    for (int64_t c = 0; c < kHeadWidth; ++c) {
      const double a = q[h * kHeadWidth + c], b = k[h * kHeadWidth + c];
      if (GetParam() == "additive") sum += w[c] * std::tanh(a + b);
      if (GetParam() == "linear") sum += w[c] * a + w[kHeadWidth + c] * b;
      if (GetParam() == "dot") sum += a * b;
      if (GetParam() == "scaled_dot") sum += a * b / std::sqrt(double{kHeadWidth});
    }
    return sum;
  }

  void expect_equals_definition(std::span<const uint8_t> mask) {
    const NoGrad off;
    const Tensor y = layer(queries, keys, values, mask, {});
    ASSERT_EQ(y.shape(), (Shape{kQueries, kOut}));
    const Matrix q = project(queries, "q_proj"), k = project(keys, "k_proj"),
                 v = project(values, "v_proj");
    Tensor joined = Tensor::zeros({kQueries, kHeads * kHeadWidth}, DType::f32);
    for (int64_t i = 0; i < kQueries; ++i) {
      for (int64_t h = 0; h < kHeads; ++h) {
        double total = 0, sums[kHeadWidth] = {};
        for (int64_t j = 0; j < kKeys; ++j) {
          if (!mask.empty() && mask[i * kKeys + j] == 0) continue;
          const double e = std::exp(score(q[i], k[j], h));
          total += e;
          for (int64_t c = 0; c < kHeadWidth; ++c) sums[c] += e * v[j][h * kHeadWidth + c];
        }
        for (int64_t c = 0; c < kHeadWidth; ++c) {
          joined.data<float>()[i * kHeads * kHeadWidth + h * kHeadWidth + c] =
              static_cast<float>(total == 0 ? 0 : sums[c] / total);
        }
      }
    }
    const Matrix wanted = project(joined, "out_proj"), ours = matrix(y);
    for (int64_t i = 0; i < kQueries; ++i) {
      for (int64_t c = 0; c < kOut; ++c) EXPECT_NEAR(ours[i][c], wanted[i][c], 5e-6) << i << c;
    }
  }

  Parameters parameters{3};
  GeneralAttention layer{Scope(parameters),
                         {.query_width = kQueryWidth,
                          .key_width = kKeyWidth,
                          .value_width = kValueWidth,
                          .heads = kHeads,
                          .head_width = kHeadWidth,
                          .out_width = kOut,
                          .scoring = GetParam()}};
  const Tensor queries = random_rows(kQueries, kQueryWidth, 1);
  const Tensor keys = random_rows(kKeys, kKeyWidth, 2);
  const Tensor values = random_rows(kKeys, kValueWidth, 3);
};

TEST_P(GeneralAttentionTest, equals_its_definition_without_a_mask) { expect_equals_definition({}); }

TEST_P(GeneralAttentionTest, equals_its_definition_under_any_mask) {
  std::mt19937 random(4);
  for (int round = 0; round < 3; ++round) {
    std::vector<uint8_t> mask(kQueries * kKeys);
    for (uint8_t& m : mask) m = random() % 2;
    std::fill(mask.begin(), mask.begin() + kKeys, uint8_t{0});  // a query that sees nothing
    expect_equals_definition(mask);
  }
  expect_equals_definition(std::vector<uint8_t>(kQueries * kKeys, 1));
}

// The loss sum(y) along each parameter's gradient grows by its squared length.
TEST_P(GeneralAttentionTest, gradients_reach_every_parameter_and_are_right) {
  const std::vector<uint8_t> mask = {1, 0, 1, 1, 1, 0, 0, 1, 1, 1, 1, 1,
                                     1, 1, 1, 0, 0, 0, 1, 1, 0, 1, 0, 1};
  const Tensor weights = random_rows(kQueries, kOut, 9);
  const auto loss = [&] { return dot(layer(queries, keys, values, mask, {}), weights); };
  backward(loss());
  for (auto& p : parameters.all()) {
    ASSERT_TRUE(p->grad().defined()) << p->name();
    if (squared_length(p->grad().to_floats()) < 1e-6) {
      // A bias of keys moves all scores alike, and linear ones have no queries.
      EXPECT_TRUE(p->name() == "k_proj.bias" ||
                  (GetParam() == "linear" && p->name().starts_with("q_proj.")))
          << p->name();
      continue;
    }
    EXPECT_NEAR(slope_along_gradient(*p, loss), 1, 0.02) << p->name();
    EXPECT_NEAR(slope_apart_from_gradient(*p, loss), 0, 0.1) << p->name();
  }
}

INSTANTIATE_TEST_SUITE_P(Scoring, GeneralAttentionTest, ::testing::ValuesIn(scoring_names()));

TEST(ScoringOf, unknown_name_is_a_data_error_that_lists_the_names) {
  expect_error(ErrorKind::data, {"cosine", "scaled_dot, dot, additive, linear"},
               [] { scoring_of("cosine"); });
}

}  // namespace
}  // namespace heddle::nn
