// Relative attention over more than one block, against loops in double.
#include "heddle/ops/relative_attention.h"
#include "tests/ops/references.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace heddle {
namespace {

struct Problem {
  RelativeInputs x;
  RelativeRows rows;
  RelativeOptions options;
};

Tensor random_rows(int64_t rows, int64_t width, std::mt19937& random) {
  std::normal_distribution<float> normal;
  Tensor t = Tensor::empty({rows, width}, DType::f32);
  for (int64_t i = 0; i < t.elements(); ++i) t.data<float>()[i] = normal(random);
  return t;
}

// Segments of these numbers of queries and keys; tokens become known in a random order.
Problem random_problem(const std::vector<int64_t>& queries, const std::vector<int64_t>& keys,
                       uint32_t seed) {
  std::mt19937 random(seed);
  Problem p;
  p.rows.queries = Segments::from_lengths(queries);
  p.rows.keys = Segments::from_lengths(keys);
  for (size_t s = 0; s < queries.size(); ++s) {
    for (int64_t i = 0; i < queries[s]; ++i) {
      p.rows.query_positions.push_back(static_cast<int32_t>(keys[s] - queries[s] + i));
      p.rows.visibility.first.push_back(static_cast<int32_t>(random() % 20));
      p.rows.visibility.limit.push_back(static_cast<int32_t>(random() % (keys[s] + 5)));
      p.rows.query_types.push_back(static_cast<int32_t>(random() % 2));
    }
    for (int64_t j = 0; j < keys[s]; ++j) {
      p.rows.key_positions.push_back(static_cast<int32_t>(j));
      p.rows.visibility.order.push_back(static_cast<int32_t>(random() % (keys[s] + 3)));
      p.rows.key_types.push_back(static_cast<int32_t>(random() % 2));
    }
  }
  constexpr int64_t kWidth = 10, kHeads = 2, kDistances = 61;
  const int64_t n = p.rows.queries.rows(), m = p.rows.keys.rows();
  p.x = {random_rows(n, kWidth, random),          random_rows(n, kWidth, random),
         random_rows(m, kWidth, random),          random_rows(m, kWidth, random),
         random_rows(kDistances, kWidth, random), random_rows(n, 2 * kHeads, random)};
  p.options = {.heads = kHeads, .farthest = 40};  // distances 40 .. -20
  return p;
}

double product(const Tensor& a, int64_t i, const Tensor& b, int64_t j, int64_t column, int64_t d) {
  const int64_t width = a.size(1);
  double sum = 0;
  for (int64_t c = column; c < column + d; ++c) {
    sum += static_cast<double>(a.data<float>()[i * width + c]) * b.data<float>()[j * width + c];
  }
  return sum;
}

// The weights of query i for the keys [begin, end) of its segment.
std::vector<double> weights(const Problem& p, int64_t i, int64_t begin, int64_t end, int64_t head) {
  const int64_t d = p.x.k.size(1) / p.options.heads;
  std::vector<double> w;
  double total = 0;
  for (int64_t j = begin; j < end; ++j) {
    const bool sees = p.rows.visibility.first[i] <= p.rows.visibility.order[j] &&
                      p.rows.visibility.order[j] < p.rows.visibility.limit[i];
    const int64_t back = std::clamp(p.rows.query_positions[i] - p.rows.key_positions[j], -20, 40);
    double score = product(p.x.content, i, p.x.k, j, head * d, d);
    score += product(p.x.distance, i, p.x.r, 40 - back, head * d, d);
    const bool is_other = p.rows.query_types[i] != p.rows.key_types[j];
    score += p.x.types.data<float>()[i * 2 * p.options.heads + 2 * head + (is_other ? 1 : 0)];
    w.push_back(sees ? std::exp(score / std::sqrt(static_cast<double>(d))) : 0);
    total += w.back();
  }
  for (double& x : w) x = total > 0 ? x / total : 0;
  return w;
}

void expect_loops_agree(const Problem& p) {
  const int64_t d = p.x.k.size(1) / p.options.heads, width = p.x.k.size(1);
  const std::vector<float> got = relative_attention(p.x, p.rows, p.options).to_floats();
  for (int64_t s = 0; s < p.rows.queries.count(); ++s) {
    for (int64_t h = 0; h < p.options.heads; ++h) {
      const auto map_of = [&](QueryRows of) {
        return relative_attention_weights(p.x, p.rows, p.options, s, h, of).to_floats();
      };
      // The first two queries, then the rest.
      const int64_t n = p.rows.queries.length(s), first = std::min<int64_t>(2, n);
      std::vector<float> map = map_of({0, first});
      const std::vector<float> rest = map_of({first, n - first});
      map.insert(map.end(), rest.begin(), rest.end());
      for (int64_t i = p.rows.queries.begin(s); i < p.rows.queries.end(s); ++i) {
        const int64_t begin = p.rows.keys.begin(s), end = p.rows.keys.end(s);
        const std::vector<double> w = weights(p, i, begin, end, h);
        for (int64_t j = begin; j < end; ++j) {
          const int64_t at = (i - p.rows.queries.begin(s)) * (end - begin) + j - begin;
          ASSERT_NEAR(map[at], w[j - begin], 1e-5) << "query " << i << ", key " << j;
        }
        for (int64_t c = h * d; c < h * d + d; ++c) {
          double want = 0;
          for (int64_t j = begin; j < end; ++j) {
            want += w[j - begin] * p.x.v.data<float>()[j * width + c];
          }
          ASSERT_NEAR(got[i * width + c], want, 2e-5) << "row " << i << ", column " << c;
        }
      }
    }
  }
}

TEST(RelativeAttention, blocks_of_long_segments_equal_loops_in_double) {
  expect_loops_agree(random_problem({150, 3}, {1100, 7}, 1));  // blocks of 112 queries
  expect_loops_agree(random_problem({301}, {301}, 2));
}

TEST(RelativeAttention, gradients_over_several_blocks_equal_those_of_the_plain_definition) {
  const Problem p = random_problem({150, 3}, {1100, 7}, 3);
  const auto gradients_of = [&](auto attention) {
    std::vector<Leaf> leaves(6);
    const RelativeInputs x{p.x.content.with_leaf(leaves.data()), p.x.distance.with_leaf(&leaves[1]),
                           p.x.k.with_leaf(&leaves[2]),          p.x.v.with_leaf(&leaves[3]),
                           p.x.r.with_leaf(&leaves[4]),          p.x.types.with_leaf(&leaves[5])};
    backward(attention(x, p.rows, p.options));
    std::vector<std::vector<float>> all;
    for (const Leaf& leaf : leaves) all.push_back(leaf.grad.to_floats());
    return all;
  };
  const auto fused = gradients_of(relative_attention);
  const auto plain = gradients_of(relative_attention_reference);
  for (size_t i = 0; i < plain.size(); ++i) {
    float largest = 1;
    for (const float g : plain[i]) largest = std::max(largest, std::abs(g));
    for (size_t j = 0; j < plain[i].size(); ++j) {
      ASSERT_NEAR(fused[i][j], plain[i][j], 2e-5 * largest) << "input " << i << ", element " << j;
    }
  }
}

TEST(RelativeAttention, a_query_whose_keys_are_all_masked_takes_them_alike) {
  Problem p = random_problem({2}, {3}, 5);
  p.rows.visibility.first = p.rows.visibility.limit = p.rows.visibility.order = {};
  p.rows.hidden = {1, 1, 1, 1, 0, 1};
  const std::vector<float> map =
      relative_attention_weights(p.x, p.rows, p.options, 0, 1, {0, 2}).to_floats();
  for (int64_t j = 0; j < 3; ++j) {
    EXPECT_FLOAT_EQ(map[j], 1.0f / 3);
    EXPECT_EQ(map[3 + j], j == 1 ? 1 : 0);
  }
}

TEST(RelativeAttention, sizes_that_do_not_fit_are_shape_errors) {
  Problem p = random_problem({2}, {3}, 4);
  p.rows.visibility.limit.pop_back();
  EXPECT_THROW(relative_attention(p.x, p.rows, p.options), Error);
  p = random_problem({2}, {3}, 4);
  p.x.types = Tensor::zeros({2, 3}, DType::f32);
  EXPECT_THROW(relative_attention(p.x, p.rows, p.options), Error);
  p = random_problem({2}, {3}, 4);
  p.rows.hidden.assign(5, 0);
  EXPECT_THROW(relative_attention(p.x, p.rows, p.options), Error);
}

}  // namespace
}  // namespace heddle
