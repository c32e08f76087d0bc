// Attention weights of some rows against softmax in float64.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "heddle/ops/attention.h"

namespace heddle {
namespace {

// Second of two segments, 3 queries over 5 keys, 2 heads of 4, the mask on.
TEST(AttentionWeights, rows_of_a_segment_and_head_equal_softmax_in_float64) {
  std::mt19937 random(5);
  std::normal_distribution<float> normal;
  const auto values = [&](int64_t rows) {
    std::vector<float> x(rows * 8);
    for (float& v : x) v = normal(random);
    return Tensor::from(x, {rows, 8});
  };
  const Tensor q = values(5), k = values(9);
  const Segments queries = Segments::from_lengths(std::vector<int64_t>{2, 3}),
                 keys = Segments::from_lengths(std::vector<int64_t>{4, 5});
  for (const bool causal : {false, true}) {
    const AttentionOptions options{.heads = 2, .causal = causal};
    for (const QueryRows rows : {QueryRows{0, 3}, QueryRows{1, 2}, QueryRows{2, 1}}) {
      const Tensor w = attention_weights(q, k, queries, keys, options, 1, 1, rows);
      ASSERT_EQ(w.shape(), (Shape{rows.count, 5}));
      for (int64_t r = 0; r < rows.count; ++r) {
        const int64_t i = rows.first + r, seen = causal ? i + 5 - 3 + 1 : 5;
        std::vector<double> e(5);
        double sum = 0;
        for (int64_t j = 0; j < seen; ++j) {
          double score = 0;
          for (int64_t d = 4; d < 8; ++d) {
            score += static_cast<double>(q.data<float>()[(2 + i) * 8 + d]) *
                     static_cast<double>(k.data<float>()[(4 + j) * 8 + d]);
          }
          e[j] = std::exp(score / 2);  // sqrt of the head's width
          sum += e[j];
        }
        for (int64_t j = 0; j < 5; ++j) {
          EXPECT_NEAR(w.data<float>()[r * 5 + j], e[j] / sum, 1e-6) << causal << i << j;
        }
      }
    }
  }
}

}  // namespace
}  // namespace heddle
