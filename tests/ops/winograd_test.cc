// Convolutions by Winograd's tiles, on every CPU: against plain ones, in any number of threads and
// blocks, and what is counted of them.
#include "heddle/ops/images/winograd.h"

#include <gtest/gtest.h>

#include <cmath>

#include "heddle/autograd/dry_run.h"
#include "heddle/base/parallel.h"
#include "heddle/base/rng.h"
#include "heddle/ops/elementwise.h"
#include "heddle/ops/reduce.h"
#include "tests/base/temporary.h"

namespace heddle {
namespace {

Tensor random_bf16(const Shape& shape, uint64_t seed) {
  RngStream random(make_key(seed, 2, 3));
  std::vector<float> values;
  for (int64_t i = 0; i < shape.elements(); ++i) values.push_back(random.uniform() - 0.5f);
  return cast(Tensor::from(values, shape), DType::bf16);
}

// Square roots of sums of squares.
double relative_error(const Tensor& x, const Tensor& want) {
  const std::vector<float> a = x.to_floats(), b = want.to_floats();
  EXPECT_EQ(a.size(), b.size());
  double error = 0, size = 0;
  for (size_t i = 0; i < a.size(); ++i) error += std::pow(a[i] - b[i], 2), size += b[i] * b[i];
  return std::sqrt(error / size);
}
constexpr double kMostError = 0.01;  // roundings to bf16 of inputs' sums, of weights', of results

const std::vector<ImageSize> kSizes = {{5, 7}, {3, 3}, {8, 6}};

TEST(WinogradConvolution, is_the_convolution_with_its_tail) {
  const NoGrad off;
  const Tensor w = random_bf16({33, 9 * 20}, 1), bias = cast(random_bf16({33}, 2), DType::f32);
  const WinogradWeight factors(w);
  for (const int64_t padding : {0, 1, 2}) {
    const WindowOptions o{3, 1, padding};
    const Tensor x = random_bf16({area(kSizes), 20}, 3);
    const Tensor added = random_bf16({area(output_sizes(kSizes, o)), 33}, 4);
    const Tensor plain = convolution(cast(x, DType::f32), kSizes, cast(w, DType::f32), bias, o);
    EXPECT_LT(
        relative_error(winograd_convolution(x, kSizes, padding, factors, {.bias = bias}), plain),
        kMostError);
    EXPECT_LT(relative_error(winograd_convolution(x, kSizes, padding, factors,
                                                  {.bias = bias, .added = added, .relu = true}),
                             activation(Activation::relu, add(plain, cast(added, DType::f32)))),
              kMostError);
  }
}

TEST(WinogradConvolution, gradients_are_those_of_the_convolution) {
  Leaf of_x, of_w;
  const WindowOptions o{3, 1, 1};
  const Tensor x = random_bf16({area(kSizes), 20}, 1), w = random_bf16({33, 9 * 20}, 2);
  const Tensor dy = random_bf16({area(kSizes), 33}, 3);
  const Tensor y = convolution(cast(x, DType::f32).with_leaf(&of_x), kSizes,
                               cast(w, DType::f32).with_leaf(&of_w), {}, o);
  backward(dot(y, cast(dy, DType::f32)));
  const auto [dx, dw] = WinogradConvolution(kSizes, 1).gradients(x, w, dy, true);
  EXPECT_LT(relative_error(dx, of_x.grad), kMostError);
  EXPECT_LT(relative_error(dw, of_w.grad), kMostError);
}

// 20 images of 24 x 24 pixels and 64 channels: several blocks of each pass; more threads than
// places, and than blocks.
TEST(WinogradConvolution, any_number_of_threads_gives_the_same_bits) {
  const std::vector<ImageSize> sizes(20, {24, 24});
  const Tensor x = random_bf16({area(sizes), 64}, 1), dy = random_bf16({area(sizes), 70}, 2);
  const Tensor w = random_bf16({70, 9 * 64}, 3);
  std::vector<std::vector<float>> all;
  const int threads_before = num_threads();
  for (const int threads : {1, 2, 5, 40}) {
    set_num_threads(threads);
    const WinogradConvolution convolution(sizes, 1);
    std::vector<float> values = convolution.product(x, WinogradWeight(w), {}).to_floats();
    const auto [dx, dw] = convolution.gradients(x, w, dy, true);
    for (const Tensor& t : {dx, dw}) {
      const std::vector<float> more = t.to_floats();
      values.insert(values.end(), more.begin(), more.end());
    }
    all.push_back(std::move(values));
  }
  set_num_threads(threads_before);
  for (const auto& values : all) EXPECT_TRUE(values == all[0]);
}

TEST(WinogradConvolution, dry_run_counts_sixteen_products_of_tiles) {
  const int threads_before = num_threads();
  set_num_threads(4);
  double flops = 0;
  {
    const DryRun dry([&](const DryOp& op) { flops += op.work.flops; });
    const Tensor x = Tensor::zeros({area(kSizes), 20}, DType::bf16);
    const Tensor w = Tensor::zeros({33, 9 * 20}, DType::bf16);
    const Tensor y = winograd_convolution(x, kSizes, 1, WinogradWeight(w));
    EXPECT_EQ(y.shape(), Shape({area(kSizes), 33}));
  }
  set_num_threads(threads_before);
  EXPECT_EQ(flops, 2.0 * 16 * (3 * 4 + 2 * 2 + 4 * 3) * 20 * 33);
}

TEST(WinogradConvolution, what_does_not_fit_is_refused) {
  const Tensor x = random_bf16({area(kSizes), 20}, 1), w = random_bf16({33, 9 * 20}, 2);
  const WinogradWeight factors(w);
  expect_error(ErrorKind::shape, {"[92, 20]", "35 pixels"},
               [&] { winograd_convolution(x, std::span(kSizes).first(1), 1, factors); });
  expect_error(ErrorKind::shape, {"f32", "20 channels"},
               [&] { winograd_convolution(cast(x, DType::f32), kSizes, 1, factors); });
  expect_error(ErrorKind::shape, {"33 outputs", "[20]"}, [&] {
    winograd_convolution(x, kSizes, 1, factors, {.bias = Tensor::zeros({20}, DType::f32)});
  });
  expect_error(ErrorKind::shape, {"[92, 33]", "[92, 20]"},
               [&] { winograd_convolution(x, kSizes, 1, factors, {.added = x}); });
  Leaf leaf;
  expect_error(ErrorKind::internal, {"no gradient"},
               [&] { winograd_convolution(x.with_leaf(&leaf), kSizes, 1, factors); });
}

}  // namespace
}  // namespace heddle
