// Attention by any scores and any mask against its definition in float64, all sizes different.
#include "heddle/ops/scoring.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <random>

#include "heddle/ops/rope.h"
#include "heddle/ops/shape.h"
#include "tests/base/temporary.h"
#include "tests/ops/references.h"

namespace heddle {
namespace {

constexpr int64_t kQueries = 3, kKeys = 5, kWidth = 4, kValueWidth = 7;

Tensor random_tensor(const Shape& shape, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(shape.elements());
  for (float& v : values) v = normal(random);
  return Tensor::from(values, shape);
}

double at(const Tensor& x, int64_t i, int64_t j) { return x.data<float>()[i * x.size(1) + j]; }

struct Kind {
  const char* name;
  std::function<Tensor(const Tensor& q, const Tensor& k)> scores;
  std::function<double(const double* q, const double* k)> plain;
};

class Scores : public ::testing::TestWithParam<int> {
 protected:
  const Tensor q = random_tensor({kQueries, kWidth}, 1), k = random_tensor({kKeys, kWidth}, 2);
  const Tensor v = random_tensor({kKeys, kValueWidth}, 3);
  const Tensor w = random_tensor({1, kWidth}, 4), both = random_tensor({1, 2 * kWidth}, 5);

  Kind kind() const {
    const auto sum = [](auto term) {
      return [term](const double* a, const double* b) {
        double total = 0;
        for (int64_t c = 0; c < kWidth; ++c) total += term(a[c], b[c], c);
        return total;
      };
    };
    const Tensor one = w, two = both;
    const Kind kinds[] = {
        {"dot", [](const Tensor& a, const Tensor& b) { return dot_scores(a, b, 1); },
         sum([](double a, double b, int64_t) { return a * b; })},
        {"scaled_dot", [](const Tensor& a, const Tensor& b) { return dot_scores(a, b, 0.5f); },
         sum([](double a, double b, int64_t) { return a * b / 2; })},
        {"additive", [one](const Tensor& a, const Tensor& b) { return additive_scores(a, b, one); },
         sum([one](double a, double b, int64_t c) { return at(one, 0, c) * std::tanh(a + b); })},
        {"linear", [two](const Tensor& a, const Tensor& b) { return linear_scores(a, b, two); },
         sum([two](double a, double b, int64_t c) {
           return at(two, 0, c) * a + at(two, 0, kWidth + c) * b;
         })},
        {"gaussian", [](const Tensor& a, const Tensor& b) { return gaussian_scores(a, b); },
         sum([](double a, double b, int64_t) { return -(a - b) * (a - b) / 2; })}};
    return kinds[GetParam()];
  }
};

// Query 0 sees all, query 1 some, query 2 nothing.
const std::vector<uint8_t> kMask = {1, 1, 1, 1, 1, 0, 1, 0, 0, 1, 0, 0, 0, 0, 0};

TEST_P(Scores, attention_equals_its_definition_in_float64_with_and_without_a_mask) {
  const Kind by = kind();
  for (const bool is_masked : {false, true}) {
    const Tensor y = attend(by.scores(q, k), v, is_masked ? kMask : std::vector<uint8_t>());
    ASSERT_EQ(y.shape(), (Shape{kQueries, kValueWidth}));
    for (int64_t i = 0; i < kQueries; ++i) {
      double total = 0, sums[kValueWidth] = {};
      for (int64_t j = 0; j < kKeys; ++j) {
        if (is_masked && kMask[i * kKeys + j] == 0) continue;
        double a[kWidth], b[kWidth];
        for (int64_t c = 0; c < kWidth; ++c) a[c] = at(q, i, c), b[c] = at(k, j, c);
        const double e = std::exp(by.plain(a, b));
        total += e;
        for (int64_t c = 0; c < kValueWidth; ++c) sums[c] += e * at(v, j, c);
      }
      for (int64_t c = 0; c < kValueWidth; ++c) {
        EXPECT_NEAR(at(y, i, c), total == 0 ? 0 : sums[c] / total, 5e-6) << by.name << i << c;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, Scores, ::testing::Range(0, 5));

TEST(ScoredAttention, pairs_in_chunks_equal_all_at_once) {
  // 600 queries of width 40 over 60 keys: 1.4 million elements of pairs.
  const Tensor q = random_tensor({600, 40}, 1), k = random_tensor({60, 40}, 2);
  const Tensor w = random_tensor({1, 40}, 3);
  const Tensor all = additive_scores(q, k, w);
  for (const int64_t i : {0, 299, 435, 436, 437, 599}) {
    const Tensor one = additive_scores(q.slice(0, i, 1), k, w);
    for (int64_t j = 0; j < 60; ++j) EXPECT_EQ(at(all, i, j), at(one, 0, j)) << i << " " << j;
  }
}

TEST(ScoredAttention, linear_scores_give_every_query_the_same_weights) {
  const Tensor scores =
      linear_scores(random_tensor({4, 3}, 1), random_tensor({5, 3}, 2), random_tensor({1, 6}, 3));
  const Tensor y = attend(scores, random_tensor({5, 2}, 4));
  for (int64_t i = 1; i < 4; ++i) EXPECT_NEAR(at(y, i, 0), at(y, 0, 0), 1e-6);
}

TEST(ScoredAttention, gaussian_kernel_looks_up_softly_and_raw_products_take_the_largest) {
  const Tensor q = Tensor::full({1, 1}, 162);
  const Tensor k = Tensor::from(std::vector<float>{160, 166, 173}, {3, 1});
  const Tensor v = Tensor::from(std::vector<float>{1, 0, 0, 0, 1, 0, 0, 0, 1}, {3, 3});
  const Tensor soft = attend(gaussian_scores(q, k), v), raw = attend(dot_scores(q, k, 1), v);
  EXPECT_NEAR(at(soft, 0, 0), 0.9975, 5e-5);
  EXPECT_NEAR(at(soft, 0, 1), 0.0025, 5e-5);
  EXPECT_LT(at(soft, 0, 2), 1e-20);
  EXPECT_EQ(at(raw, 0, 2), 1);
}

TEST(ScoredAttention, sizes_that_do_not_fit_are_shape_errors) {
  const Tensor q = random_tensor({3, 4}, 1), k = random_tensor({5, 3}, 2);
  expect_error(ErrorKind::shape, {"widths"}, [&] { additive_scores(q, k, q); });
  const Tensor scores = random_tensor({3, 5}, 3);
  expect_error(ErrorKind::shape, {"a value for each key"}, [&] {
    attend(scores, random_tensor({4, 2}, 1));
  });
  expect_error(ErrorKind::shape, {"mask has 2 values"}, [&] {
    const std::vector<uint8_t> mask = {1, 1};
    attend(scores, random_tensor({5, 2}, 1), mask);
  });
}

// Two segments, 2 and 3 queries over 4 and 5 keys, 2 heads of 4.
TEST(ScoredAttention, window_hides_far_keys_in_every_form_of_attention) {
  const Tensor q = random_tensor({5, 8}, 1), k = random_tensor({9, 8}, 2),
               v = random_tensor({9, 8}, 3);
  const Segments queries = Segments::from_lengths(std::vector<int64_t>{2, 3}),
                 keys = Segments::from_lengths(std::vector<int64_t>{4, 5});
  const std::vector<int32_t> query_positions = {2, 3, 2, 3, 4},
                             key_positions = {0, 1, 2, 3, 0, 1, 2, 3, 4};
  Visibility window = visibility_of(queries, keys, true);
  keep_window(window, queries, keys, query_positions, key_positions, 2);
  const AttentionOptions options{.heads = 2,
                                 .visibility = std::make_shared<const Visibility>(window)};
  const Tensor kv = concat({k, v}, 1);
  const Tensor all[] = {attention(q, k, v, queries, keys, options),
                        cross_attention(q, kv, queries, keys, options),
                        attention_reference(q, k, v, queries, keys, options)};
  for (int64_t i = 0; i < 5; ++i) {
    const int64_t segment = i < 2 ? 0 : 1, row = i - queries.begin(segment);
    const int64_t own = keys.begin(segment) + query_positions[i];  // the key at its position
    for (int64_t head = 0; head < 2; ++head) {
      // It is seen, and the one before.
      double before = 0, here = 0;
      for (int64_t c = head * 4; c < head * 4 + 4; ++c) {
        before += at(q, i, c) * at(k, own - 1, c) / 2;
        here += at(q, i, c) * at(k, own, c) / 2;
      }
      const double weight = 1 / (1 + std::exp(before - here));
      for (int64_t c = head * 4; c < head * 4 + 4; ++c) {
        const double expected = weight * at(v, own, c) + (1 - weight) * at(v, own - 1, c);
        for (const Tensor& y : all) EXPECT_NEAR(at(y, i, c), expected, 1e-5) << i << ' ' << c;
      }
      const Tensor w = attention_weights(q, k, queries, keys, options, segment, head);
      EXPECT_NEAR(at(w, row, query_positions[i]), weight, 1e-6);
    }
  }
}

TEST(ScoredAttention, what_does_not_fit_is_a_shape_error_in_every_form) {
  const Tensor q = random_tensor({3, 8}, 1), k = random_tensor({5, 8}, 2);
  const Segments three = Segments::from_lengths(std::vector<int64_t>{3}),
                 five = Segments::from_lengths(std::vector<int64_t>{5});
  const std::vector<int32_t> positions(3), more(5);
  const auto refused = [&](const std::vector<std::string>& words, const AttentionOptions& options) {
    expect_error(ErrorKind::shape, words, [&] { scored_attention(q, k, k, three, five, options); });
  };
  refused({"not divisible by 3 heads"}, {.heads = 3});
  refused({"q is [3, 8], k [5, 8]"}, {.heads = 4, .key_heads = 2});
  Visibility v = visibility_of(three, five, true);
  expect_error(ErrorKind::shape, {"0 key positions for 5 rows"},
               [&] { keep_window(v, three, five, positions, {}, 1); });
  expect_error(ErrorKind::shape, {"0 query positions for 3 rows"},
               [&] { keep_window(v, three, five, {}, more, 1); });
  expect_error(ErrorKind::shape, {"1 marks of unseen keys for 5 rows"},
               [&] { hide_keys(v, five, std::vector<uint8_t>{1}); });
  v.limit.pop_back();
  refused({"2 limits for 3 rows"},
          {.heads = 2, .visibility = std::make_shared<const Visibility>(v)});
  refused({"table [buckets, 2]"}, {.heads = 2, .bias = {random_tensor({4, 3}, 1), nullptr}});
}

// <R(p) q, R(p') k> depends on p - p' only; R(0) changes nothing, and lengths stay.
TEST(Rope, products_depend_on_distance_only) {
  const Tensor q = random_tensor({1, 8}, 1), k = random_tensor({1, 8}, 2);
  const auto turn = [](const Tensor& x, int32_t position) {
    const std::vector<int32_t> positions = {position};
    return rope(x, positions, {.head_width = 8, .columns = 8, .table = rotary_table(8, 0, {})});
  };
  const auto product = [&](int32_t p, int32_t p2) {
    const Tensor a = turn(q, p), b = turn(k, p2);
    double sum = 0;
    for (int64_t c = 0; c < 8; ++c) sum += at(a, 0, c) * at(b, 0, c);
    return sum;
  };
  EXPECT_EQ(turn(q, 0).to_floats(), q.to_floats());
  EXPECT_NEAR(product(7, 3), product(4, 0), 1e-5);
  EXPECT_NEAR(product(1007, 1003), product(4, 0), 1e-5);
  EXPECT_GT(std::abs(product(4, 0) - product(5, 0)), 1e-3);
}

// Width 4, position 2: pairs (0, 2) and (1, 3) turn by 2 and by 2 / 100; the rest is copied.
TEST(Rope, equals_rotations_by_hand) {
  const Tensor x = Tensor::from(std::vector<float>{1, 0, 0, 1, 5, 6}, {1, 6});
  const std::vector<int32_t> positions = {2};
  const auto table = rotary_table(4, 0, {});
  const auto y = rope(x, positions, {.head_width = 4, .columns = 4, .table = table}).to_floats();
  const double wanted[] = {std::cos(2.0), -std::sin(0.02), std::sin(2.0), std::cos(0.02), 5, 6};
  for (int i = 0; i < 6; ++i) EXPECT_NEAR(y[i], wanted[i], 1e-7) << i;
  expect_error(ErrorKind::shape, {"heads must be even"},
               [&] { rope(x, positions, {.head_width = 3, .columns = 3, .table = table}); });
}

// Against a copy of the definition: a table of 2 heads, reach 1.
TEST(RelativeBias, weights_gain_the_bias_of_their_distance) {
  const Tensor q = random_tensor({2, 4}, 6), k = random_tensor({3, 4}, 7);
  const Tensor table = Tensor::from(std::vector<float>{0.5f, -1, 2, 0.25f, -0.5f, 3}, {3, 2});
  const auto buckets = std::make_shared<const std::vector<int32_t>>(std::vector<int32_t>{1, 0, 2});
  const AttentionOptions options{.heads = 2, .bias = {table, buckets}};
  const Segments two = Segments::uniform(1, 2), three = Segments::uniform(1, 3);
  for (const int64_t head : {0, 1}) {
    const Tensor w = attention_weights(q, k, two, three, options, 0, head);
    for (int64_t i = 0; i < 2; ++i) {
      double e[3], total = 0;
      for (int64_t j = 0; j < 3; ++j) {
        const int64_t distance = j - (i + 1);  // two queries over three keys stand at 1 and 2
        const int64_t bucket = distance < 0 ? 1 : distance == 0 ? 0 : 2;
        double dot = 0;
        for (int64_t c = 2 * head; c < 2 * head + 2; ++c) dot += at(q, i, c) * at(k, j, c);
        total += e[j] = std::exp(dot / std::sqrt(2.0) + at(table, bucket, head));
      }
      for (int64_t j = 0; j < 3; ++j) EXPECT_NEAR(at(w, i, j), e[j] / total, 1e-6);
    }
  }
}

}  // namespace
}  // namespace heddle
