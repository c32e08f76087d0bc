// Batch norm where its cases do not look: at ReLU's kink, over many chunks of rows, far from zero.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "heddle/kernels/kernels.h"
#include "heddle/ops/elementwise.h"
#include "heddle/ops/images/batch_norm.h"
#include "heddle/ops/reduce.h"
#include "tests/base/temporary.h"

namespace heddle {
namespace {

Tensor normal(const Shape& shape, uint32_t seed, float offset = 0) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> distribution(offset, 1);
  std::vector<float> values(static_cast<size_t>(shape.elements()));
  for (float& v : values) v = distribution(generator);
  return Tensor::from(values, shape);
}

struct Inputs {
  Tensor x = normal({1000, 21}, 1), gamma = normal({21}, 2), beta = normal({21}, 3);
  Tensor added = normal({1000, 21}, 4), weights = normal({1000, 21}, 5);
};

template <class F>
std::vector<std::vector<float>> values_and_gradients(const Inputs& in, bool adds, const F& f) {
  std::vector<Leaf> leaves(4);
  const Tensor y =
      f(in.x.with_leaf(&leaves[0]), in.gamma.with_leaf(&leaves[1]), in.beta.with_leaf(&leaves[2]),
        adds ? in.added.with_leaf(&leaves[3]) : Tensor());
  std::vector<std::vector<float>> all = {y.to_floats()};
  backward(dot(y, in.weights));
  for (const Leaf& leaf : leaves) {
    if (leaf.grad.defined()) all.push_back(leaf.grad.to_floats());
  }
  return all;
}

TEST(BatchNorm, with_relu_and_a_sum_is_what_the_ops_give_one_by_one) {
  const Inputs in;
  for (const bool adds : {false, true}) {
    const auto fused = values_and_gradients(in, adds, [&](auto x, auto g, auto b, auto added) {
      return batch_norm(x, g, b, added, {.relu = true});
    });
    const auto apart = values_and_gradients(in, adds, [&](auto x, auto g, auto b, auto added) {
      const Tensor y = batch_norm(x, g, b, {});
      return activation(Activation::relu, adds ? add(y, added) : y);
    });
    ASSERT_EQ(fused.size(), adds ? 5u : 4u);  // values, and a gradient for each input
    ASSERT_EQ(apart.size(), fused.size());
    for (size_t i = 0; i < fused.size(); ++i) {
      for (size_t k = 0; k < fused[i].size(); ++k) {
        ASSERT_NEAR(fused[i][k], apart[i][k], 2e-4 * (1 + std::fabs(apart[i][k]))) << i << ' ' << k;
      }
    }
  }
}

TEST(BatchNorm, variance_of_columns_far_from_zero_is_not_lost) {
  const ColumnMoments of = column_moments(normal({5000, 3}, 7, 1000));
  for (int64_t c = 0; c < 3; ++c) {
    EXPECT_NEAR(of.mean.data<float>()[c], 1000, 0.1);
    EXPECT_NEAR(of.variance.data<float>()[c], 1, 0.06);
  }
}

TEST(BatchNorm, of_one_row_is_its_bias) {
  const Tensor y = batch_norm(normal({1, 4}, 1), normal({4}, 2), Tensor::full({4}, 0.5f), {});
  EXPECT_EQ(y.to_floats(), std::vector<float>(4, 0.5f));
}

TEST(BatchNorm, refuses_what_does_not_fit) {
  const Tensor x = normal({2, 3}, 1), three = normal({3}, 2), four = normal({4}, 2);
  expect_error(ErrorKind::shape, {"gamma is [4] f32"}, [&] { batch_norm(x, four, three, {}); });
  expect_error(ErrorKind::shape, {"added"}, [&] { batch_norm(x, three, three, four); });
  expect_error(ErrorKind::shape, {"must be a row"}, [&] {
    batch_norm(Tensor::zeros({0, 3}, DType::f32), three, three, {});
  });
}

}  // namespace
}  // namespace heddle
