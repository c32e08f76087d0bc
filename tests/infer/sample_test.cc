// Drawn tokens against the distribution that temperature and limits define.
#include "heddle/infer/search/beam.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <random>

#include "tests/base/temporary.h"

namespace heddle::testing {
namespace {

std::vector<float> random_row(int64_t vocab) {
  std::mt19937 random(5);
  std::vector<float> x(vocab);
  for (float& v : x) v = static_cast<float>(random() % 1000) / 200;
  return x;
}

// The definition, one limit after the other, each with probabilities anew.
std::vector<double> distribution(const std::vector<float>& x, const SearchConfig& s,
                                 const std::vector<int32_t>& never) {
  std::vector<double> p(x.size());
  for (size_t i = 0; i < x.size(); ++i) p[i] = std::exp(x[i] / s.temperature.value_or(1));
  for (const int32_t id : never) p[id] = 0;
  std::vector<size_t> order(x.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return p[a] > p[b]; });
  for (size_t i = 0; s.top_k > 0 && i < order.size(); ++i) {
    if (i >= static_cast<size_t>(*s.top_k)) p[order[i]] = 0;
  }
  const double total = std::accumulate(p.begin(), p.end(), 0.0);
  double sum = 0;
  for (const size_t i : order) {
    const bool is_in = sum < s.top_p.value_or(1) * total;
    sum += p[i];
    if (!is_in) p[i] = 0;
  }
  const double most = p[order[0]];
  for (double& v : p) v = v < s.min_p.value_or(0) * most ? 0 : v;
  const double left = std::accumulate(p.begin(), p.end(), 0.0);
  for (double& v : p) v /= left;
  return p;
}

class Drawn : public ::testing::TestWithParam<SearchConfig> {};

TEST_P(Drawn, tokens_come_as_often_as_their_probability_says) {
  constexpr int64_t kVocab = 20, kRows = 20000;
  const auto x = random_row(kVocab);
  Tensor logits = Tensor::empty({kRows, kVocab}, DType::f32);
  const SearchConfig& sampling = GetParam();
  const std::vector<int32_t> suppressed = {3}, banned = {7, 8};
  std::vector<SampleRow> rows;
  for (int64_t r = 0; r < kRows; ++r) {
    std::copy(x.begin(), x.end(), logits.data<float>() + r * kVocab);
    const double draw = sample_draw(sampling.seed.value_or(1), r / 100, r % 10, r % 100 / 10);
    rows.push_back({&sampling, draw, suppressed, banned});
  }
  const auto tokens = sample_tokens(logits, rows);
  const auto p = distribution(x, GetParam(), {3, 7, 8});
  std::vector<double> seen(kVocab);
  for (const NextToken& w : tokens) ++seen.at(w.id);
  double chi_square = 0;
  int cells = 0;
  for (int64_t i = 0; i < kVocab; ++i) {
    if (p[i] == 0) {
      EXPECT_EQ(seen[i], 0) << i;
      continue;
    }
    chi_square += std::pow(seen[i] - p[i] * kRows, 2) / (p[i] * kRows);
    ++cells;
  }
  // Upper 1e-4 quantile, Wilson & Hilferty 1931.
  const double k = std::max(1, cells - 1);
  EXPECT_LT(chi_square, k * std::pow(1 - 2 / (9 * k) + 3.719 * std::sqrt(2 / (9 * k)), 3)) << cells;
}

INSTANTIATE_TEST_SUITE_P(
    Limits, Drawn,
    ::testing::Values(SearchConfig{}, SearchConfig{.temperature = 0.5},
                      SearchConfig{.temperature = 3, .seed = 9}, SearchConfig{.top_k = 4},
                      SearchConfig{.top_p = 0.7}, SearchConfig{.min_p = 0.2},
                      SearchConfig{.temperature = 2, .top_k = 10, .top_p = 0.8, .min_p = 0.3}));

TEST(SampleTokens, log_p_is_that_of_the_model_whatever_the_temperature) {
  const auto x = random_row(300);
  const Tensor logits = Tensor::from(x, {1, 300});
  double sum = 0;
  for (const float v : x) sum += std::exp(static_cast<double>(v));
  for (const double draw : {0.0, 0.3, 0.99999999}) {
    const SearchConfig sampling{.temperature = 0.3, .top_k = 5};
    const std::vector<SampleRow> row = {{&sampling, draw}};
    const NextToken w = sample_tokens(logits, row)[0];
    EXPECT_NEAR(w.log_p, x[w.id] - std::log(sum), 1e-5);
  }
}

TEST(SampleTokens, renormalized_log_p_is_that_of_the_draw) {
  const Tensor logits = Tensor::from(random_row(300), {1, 300});
  const SearchConfig sampling{.renormalize_logits = "true", .temperature = 0.3, .top_k = 5};
  std::map<int32_t, float> log_ps;
  for (int i = 0; i < 1000; ++i) {
    const std::vector<SampleRow> row = {{&sampling, i / 1000.0}};
    const NextToken w = sample_tokens(logits, row)[0];
    log_ps[w.id] = w.log_p;
  }
  double sum = 0;
  for (const auto& [id, log_p] : log_ps) sum += std::exp(log_p);
  EXPECT_NEAR(sum, 1, 1e-3);
}

TEST(SampleTokens, forced_row_gives_its_token_an_empty_one_none_and_others_have_none) {
  const Tensor logits = Tensor::full({3, 5}, 1);
  const std::vector<int32_t> all = {0, 1, 2, 3, 4};
  const SearchConfig sampling;
  const std::vector<SampleRow> rows = {{&sampling, 0.5, all, {}, 2}, {}, {&sampling, 0.5, all}};
  const auto tokens = sample_tokens(logits, rows);
  ASSERT_EQ(tokens.size(), 2u);
  EXPECT_EQ(tokens[0].id, 2);
  EXPECT_EQ(tokens[1].id, -1);
}

TEST(SampleDraw, is_uniform_and_differs_in_every_argument) {
  double sum = 0, squares = 0;
  for (int64_t line = 0; line < 10000; ++line) {
    const double u = sample_draw(1, line, 0, 0);
    ASSERT_GE(u, 0);
    ASSERT_LT(u, 1);
    sum += u, squares += u * u;
  }
  EXPECT_NEAR(sum / 10000, 1.0 / 2, 0.012);  // 4 standard errors
  EXPECT_NEAR(squares / 10000, 1.0 / 3, 0.012);
  const double one = sample_draw(1, 2, 3, 4);
  EXPECT_EQ(sample_draw(1, 2, 3, 4), one);
  for (const double other : {sample_draw(2, 2, 3, 4), sample_draw(1, 3, 3, 4),
                             sample_draw(1, 2, 4, 4), sample_draw(1, 2, 3, 5)}) {
    EXPECT_NE(other, one);
  }
}

}  // namespace
}  // namespace heddle::testing
