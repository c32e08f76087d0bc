// Relative attention on its own against its formula in float64: a memory, two streams, types.
#include "heddle/nn/relative/relative_attention.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "heddle/ops/elementwise.h"
#include "heddle/ops/reduce.h"
#include "heddle/ops/shape.h"
#include "tests/nn/slopes.h"

namespace heddle::nn {
namespace {

constexpr int64_t kWidth = 6, kHeads = 2, kHeadWidth = 5, kInner = kHeads * kHeadWidth;

Segments lengths(const std::vector<int64_t>& each) { return Segments::from_lengths(each); }

// x Wᵀ for rows [begin, begin + count) of W.
std::vector<std::vector<double>> project(const Tensor& x, const Tensor& w, int64_t begin,
                                         int64_t count) {
  const auto a = x.to_floats(), b = w.to_floats();
  const int64_t in = x.size(1);
  std::vector<std::vector<double>> y(x.size(0), std::vector<double>(count));
  for (int64_t i = 0; i < x.size(0); ++i) {
    for (int64_t o = 0; o < count; ++o) {
      for (int64_t c = 0; c < in; ++c) y[i][o] += double{a[i * in + c]} * b[(begin + o) * in + c];
    }
  }
  return y;
}

// Three sequences; the second has no memory. Targets: one token of the first, two of the second.
class RelativeAttentionTest : public ::testing::Test {
 protected:
  RelativeAttentionTest() {
    order.steps = {2, 0, 1, 0, 3, 1, 2, 0};
    order.targets = lengths({1, 2, 0});
    order.target_tokens = {2, 4, 3};
    pass.tokens = {.segments = &tokens, .types = types, .order = &order};
    pass.memory.segments = memory;
    RelativeRows rows = rows_behind(memory, pass.tokens);
    pass.distances = distances(farthest(rows), nearest(rows), 3, kWidth, DType::f32);
    RelativeRows predicted = rows_of_targets(rows, order);
    see_in_order(predicted, tokens, {.order = &order, .is_of_targets = true});
    see_in_order(rows, tokens, {.order = &order});
    pass.streams = {{.rows = rows}, {.rows = predicted, .prefix = "target_"}};
  }

  Parameter& make(const char* name, const Shape& shape) {
    return (Scope(parameters) / name).parameter(shape, Init::normal(0.5));
  }

  // out[query][inner] of one stream by the formula, pair by pair.
  Tensor definition(const RelativeStream& stream, const Tensor& x) {
    const Tensor all = join_segments(before, memory, states, tokens);
    const auto q = project(x, qkv.value(), 0, kInner),
               k = project(all, qkv.value(), kInner, kInner),
               value = project(all, qkv.value(), 2 * kInner, kInner),
               far = project(pass.distances.table, r.value(), 0, kInner);
    const auto biases = u.value().to_floats(), distance = v.value().to_floats(),
               type = s.value().to_floats(), embeddings = e.value().to_floats();
    const RelativeRows& rows = stream.rows;
    Tensor heads = Tensor::zeros({x.size(0), kInner}, DType::f32);
    for (int64_t n = 0; n < rows.queries.count(); ++n) {
      for (int64_t i = rows.queries.begin(n); i < rows.queries.end(n); ++i) {
        for (int64_t h = 0; h < kHeads; ++h) {
          double total = 0;
          std::vector<double> sums(kHeadWidth);
          for (int64_t j = rows.keys.begin(n); j < rows.keys.end(n); ++j) {
            if (rows.visibility.order[j] < rows.visibility.first[i] ||
                rows.visibility.order[j] >= rows.visibility.limit[i])
              continue;
            const int32_t position =
                pass.distances.farthest - (rows.query_positions[i] - rows.key_positions[j]);
            const int64_t t = std::clamp<int64_t>(position, 0, pass.distances.table.size(0) - 1);
            const int64_t other = rows.query_types[i] == rows.key_types[j] ? 0 : 1;
            double score = 0;
            for (int64_t c = h * kHeadWidth; c < (h + 1) * kHeadWidth; ++c) {
              score += (q[i][c] + biases[c]) * k[j][c] + (q[i][c] + distance[c]) * far[t][c] +
                       (q[i][c] + type[c]) * embeddings[other * kInner + c];
            }
            const double w = std::exp(score / std::sqrt(double{kHeadWidth}));
            total += w;
            for (int64_t c = 0; c < kHeadWidth; ++c) sums[c] += w * value[j][h * kHeadWidth + c];
          }
          for (int64_t c = 0; c < kHeadWidth && total > 0; ++c) {
            heads.data<float>()[i * kInner + h * kHeadWidth + c] =
                static_cast<float>(sums[c] / total);
          }
        }
      }
    }
    const auto y = project(heads, out.value(), 0, kWidth);
    Tensor result = Tensor::empty({x.size(0), kWidth}, DType::f32);
    for (int64_t i = 0; i < x.size(0); ++i) {
      for (int64_t c = 0; c < kWidth; ++c) {
        result.data<float>()[i * kWidth + c] = static_cast<float>(y[i][c]);
      }
    }
    return result;
  }

  std::vector<Tensor> attend() {
    const std::vector<Tensor> x = {states, targets};
    return attention(x, before, pass, {});
  }

  const Segments tokens = lengths({3, 4, 1});
  const Segments memory = lengths({2, 0, 3});
  const std::vector<int32_t> types = {0, 1, 1, 0, 0, 1, 0, 1};
  TokenOrder order;
  RelativePass pass;
  const Tensor states = random_rows(8, kWidth, 1), targets = random_rows(3, kWidth, 2),
               before = random_rows(5, kWidth, 3);

  Parameters parameters{7};
  Parameter &qkv = make("qkv", {3 * kInner, kWidth}), &r = make("r", {kInner, kWidth}),
            &out = make("out", {kWidth, kInner}), &u = make("u", {kInner}),
            &v = make("v", {kInner}), &s = make("s", {kInner}), &e = make("e", {2, kInner});
  RelativeAttention attention{
      "attention",
      Linear("qkv", qkv),
      Linear("r", r),
      Linear("out", out),
      {.heads = kHeads, .content = &u, .distance = &v, .type = &s, .types = &e}};
};

TEST_F(RelativeAttentionTest, both_streams_equal_the_formula) {
  const std::vector<Tensor> recorded = attend();  // products by slices of the weights
  const NoGrad off;
  const std::vector<Tensor> y = attend();
  for (size_t i = 0; i < 2; ++i) {
    const auto wanted = definition(pass.streams[i], i == 0 ? states : targets).to_floats();
    const auto ours = y[i].to_floats(), again = recorded[i].to_floats();
    ASSERT_EQ(ours.size(), wanted.size());
    for (size_t c = 0; c < ours.size(); ++c) {
      EXPECT_NEAR(ours[c], wanted[c], 5e-6) << i << " " << c;
      EXPECT_NEAR(again[c], wanted[c], 5e-6) << i << " " << c;
    }
  }
}

// Along each parameter's gradient the loss grows by its squared length.
TEST_F(RelativeAttentionTest, gradients_of_both_streams_reach_every_parameter_and_are_right) {
  const Tensor first = random_rows(8, kWidth, 8), second = random_rows(3, kWidth, 9);
  const auto loss = [&] {
    const std::vector<Tensor> y = attend();
    return add(dot(y[0], first), dot(y[1], second));
  };
  backward(loss());
  for (auto& p : parameters.all()) {
    ASSERT_TRUE(p->grad().defined()) << p->name();
    ASSERT_GT(squared_length(p->grad().to_floats()), 1e-4) << p->name();
    EXPECT_NEAR(slope_along_gradient(*p, loss), 1, 0.02) << p->name();
    EXPECT_NEAR(slope_apart_from_gradient(*p, loss), 0, 0.1) << p->name();
  }
}

// --- positions and rules, by hand
// -------------------------------------------------------------------

// Which keys each query sees, as 1 and 0.
std::vector<std::string> seen(const RelativeRows& rows) {
  std::vector<std::string> all;
  size_t pair = 0;
  for (int64_t s = 0; s < rows.queries.count(); ++s) {
    for (int64_t i = rows.queries.begin(s); i < rows.queries.end(s); ++i) {
      std::string& of_query = all.emplace_back();
      for (int64_t j = rows.keys.begin(s); j < rows.keys.end(s); ++j, ++pair) {
        const bool is_hidden = !rows.hidden.empty() && rows.hidden[pair] != 0;
        const bool is_in_range = rows.visibility.order.empty() ||
                                 (rows.visibility.first[i] <= rows.visibility.order[j] &&
                                  rows.visibility.order[j] < rows.visibility.limit[i]);
        of_query += is_in_range && !is_hidden ? '1' : '0';
      }
    }
  }
  return all;
}

using Ints = std::vector<int32_t>;
using Seen = std::vector<std::string>;

TEST(RelativeRows, keys_are_the_memory_then_the_tokens_and_may_run_backwards) {
  const Segments tokens = lengths({2, 1}), memory = lengths({1, 2});
  RelativeRows rows = rows_behind(memory, {.segments = &tokens});
  EXPECT_EQ(rows.key_positions, (Ints{-1, 0, 1, -2, -1, 0}));
  EXPECT_EQ(rows.query_positions, (Ints{0, 1, 0}));
  EXPECT_EQ(farthest(rows), 2);
  EXPECT_EQ(nearest(rows), -1);
  run_backwards(rows, 1);
  EXPECT_EQ(rows.key_positions, (Ints{-1, 0, 1, 2, 1, 0}));
  EXPECT_EQ(nearest(rows), -2);
}

TEST(RelativeRows, a_window_ends_as_many_positions_back) {
  const Segments tokens = lengths({3}), memory = lengths({2});
  RelativeRows rows = rows_behind(memory, {.segments = &tokens});
  RelativeRows window = rows;
  see_back(rows, 0);
  EXPECT_EQ(seen(rows), (Seen{"11100", "11110", "11111"}));
  see_back(window, 2);
  EXPECT_EQ(seen(window), (Seen{"01100", "00110", "00011"}));
}

TEST(RelativeRows, an_order_shows_earlier_steps_to_tokens_and_their_predictions) {
  const Segments tokens = lengths({3}), memory = lengths({1});
  TokenOrder order{.steps = {2, 0, 1}};
  order.targets = lengths({3});
  order.target_tokens = {0, -1, 2};
  RelativeRows rows = rows_behind(memory, {.segments = &tokens});
  RelativeRows targets = rows_of_targets(rows, order);
  see_in_order(rows, tokens, {.order = &order});
  see_in_order(targets, tokens, {.order = &order, .is_of_targets = true});
  EXPECT_EQ(seen(rows), (Seen{"1111", "1010", "1011"}));
  EXPECT_EQ(seen(targets), (Seen{"1011", "0000", "1010"}));
  EXPECT_EQ(targets.query_positions, (Ints{0, 0, 2}));
}

TEST(RelativeRows, a_causal_rule_is_the_texts_order_and_a_mask_adds_to_it) {
  const Segments tokens = lengths({3}), memory = lengths({1});
  const RelativeRows plain = rows_behind(memory, {.segments = &tokens});
  RelativeRows causal = plain, window = plain, masked = plain;
  see_in_order(causal, tokens, {.is_causal = true});
  EXPECT_EQ(seen(causal), (Seen{"1100", "1110", "1111"}));
  see_in_order(window, tokens, {.is_causal = true, .is_windowed = true});
  EXPECT_EQ(seen(window), (Seen{"1100", "0110", "0011"}));
  const TokenOrder order{.hidden = {1, 0, 0, 1, 0, 0, 0, 0, 1}};  // a token always sees itself
  see_in_order(masked, tokens, {.order = &order, .is_causal = true, .is_windowed = true});
  EXPECT_EQ(seen(masked), (Seen{"1100", "0010", "0011"}));
}

TEST(RelativeRows, steps_of_a_causal_model_are_a_data_error) {
  const Segments tokens = lengths({2}), none = lengths({0});
  RelativeRows rows = rows_behind(none, {.segments = &tokens});
  const TokenOrder order{.steps = {1, 0}};
  EXPECT_THROW(see_in_order(rows, tokens, {.order = &order, .is_causal = true}), Error);
}

}  // namespace
}  // namespace heddle::nn
