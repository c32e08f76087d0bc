// Attention with positions: scores of states and of positions apart, against the sums written out.
#include "heddle/nn/positioned_attention.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "tests/base/temporary.h"
#include "tests/nn/slopes.h"

namespace heddle::nn {
namespace {

constexpr int64_t kWidth = 8, kHeads = 2, kQueries = 3, kKeys = 5;

using Doubles = std::vector<double>;

// One sequence in double, by the parameters' names.
class Plain {
 public:
  explicit Plain(const Parameters& parameters) {
    parameters.for_each_tensor([&](const std::string& name, const Shape& shape, const float* from) {
      tensors_[name] = {from, from + shape.elements()};
    });
  }
  // [rows, width] through the linear layer of a name.
  Doubles through(const std::string& layer, const Doubles& x) const {
    const Doubles &w = tensors_.at(layer + ".weight"), &b = tensors_.at(layer + ".bias");
    Doubles y;
    for (size_t r = 0; r < x.size() / kWidth; ++r) {
      for (size_t o = 0; o < kWidth; ++o) {
        double sum = b[o];
        for (size_t i = 0; i < kWidth; ++i) sum += x[r * kWidth + i] * w[o * kWidth + i];
        y.push_back(sum);
      }
    }
    return y;
  }

 private:
  std::map<std::string, Doubles> tensors_;
};

Doubles doubles(const Tensor& x) {
  const std::vector<float> values = x.to_floats();
  return {values.begin(), values.end()};
}

// softmax((q k + q' k') / sqrt(2 d)) v of each head.
Doubles heads_of(const Plain& plain, const PositionedAttention::Inputs& in) {
  const Doubles q = plain.through("a.q_proj", doubles(in.queries)),
                k = plain.through("a.k_proj", doubles(in.keys)),
                v = plain.through("a.v_proj", doubles(in.values)),
                sq = plain.through("a.spatial_q_proj", doubles(in.spatial_queries)),
                sk = plain.through("a.spatial_k_proj", doubles(in.spatial_keys));
  constexpr size_t kHeadWidth = kWidth / kHeads;
  Doubles y(kQueries * kWidth);
  for (size_t h = 0; h < kHeads; ++h) {
    for (size_t i = 0; i < kQueries; ++i) {
      Doubles weights;
      double total = 0;
      for (size_t j = 0; j < kKeys; ++j) {
        double score = 0;
        for (size_t c = h * kHeadWidth; c < (h + 1) * kHeadWidth; ++c) {
          score += q[i * kWidth + c] * k[j * kWidth + c] + sq[i * kWidth + c] * sk[j * kWidth + c];
        }
        weights.push_back(std::exp(score / std::sqrt(2.0 * kHeadWidth)));
        total += weights.back();
      }
      for (size_t j = 0; j < kKeys; ++j) {
        for (size_t c = h * kHeadWidth; c < (h + 1) * kHeadWidth; ++c) {
          y[i * kWidth + c] += weights[j] / total * v[j * kWidth + c];
        }
      }
    }
  }
  return y;
}

TEST(PositionedAttention, spatial_scores_are_added_to_those_of_states) {
  Parameters parameters(3);
  const PositionedAttention layer(
      Scope(parameters) / "a",
      {.width = kWidth, .heads = kHeads, .is_cross = true, .has_spatial_scores = true});
  const PositionedAttention::Inputs in{.queries = random_rows(kQueries, kWidth, 1),
                                       .keys = random_rows(kKeys, kWidth, 2),
                                       .values = random_rows(kKeys, kWidth, 3),
                                       .spatial_queries = random_rows(kQueries, kWidth, 4),
                                       .spatial_keys = random_rows(kKeys, kWidth, 5)};
  const Segments queries = Segments::from_lengths(std::vector<int64_t>{kQueries}),
                 keys = Segments::from_lengths(std::vector<int64_t>{kKeys});
  const NoGrad off;
  const Doubles got = doubles(layer(in, {&queries, &keys}, {}));
  const Plain plain(parameters);
  const Doubles want = plain.through("a.out_proj", heads_of(plain, in));
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-5) << i;
}

TEST(PositionedAttention, spatial_scores_are_of_cross_attention_alone) {
  Parameters parameters(3);
  expect_error(ErrorKind::internal, {"cross-attention"}, [&] {
    PositionedAttention(Scope(parameters) / "a", {.width = kWidth, .has_spatial_scores = true});
  });
}

}  // namespace
}  // namespace heddle::nn
