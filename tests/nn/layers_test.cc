// Linear layers in each precision.
#include "heddle/nn/layers.h"

#include <gtest/gtest.h>

#include <cmath>

namespace heddle::nn {
namespace {

Tensor some_rows(int64_t rows, int64_t width, DType dtype) {
  Tensor x = Tensor::empty({rows, width}, DType::f32);
  for (int64_t i = 0; i < x.elements(); ++i) {
    x.data<float>()[i] = std::sin(static_cast<float>(i * i));
  }
  if (dtype == DType::f32) return x;
  Tensor y = empty_like(x, dtype);
  kernels().convert(x.rows(), y.rows());
  return y;
}

// The packed form of a weight belongs to its dtype.
TEST(Linear, weights_serve_f32_and_bf16_by_turns) {
  Parameters all(1);
  const Linear layer(Scope(all), {.in = 96, .out = 160, .init = Init::normal(0.1)});
  const NoGrad off;
  const auto out = [&](DType compute) {
    return layer(some_rows(5, 96, compute), {.compute = compute}).to_floats();
  };
  const std::vector<float> f32 = out(DType::f32), bf16 = out(DType::bf16);
  EXPECT_EQ(out(DType::f32), f32);
  EXPECT_EQ(out(DType::bf16), bf16);
  // Sums of 96 products of deviation 0.07: deviation 0.7; bf16 rounds factors and sum by 2^-9.
  for (size_t i = 0; i < f32.size(); ++i) ASSERT_NEAR(bf16[i], f32[i], 0.03) << i;
}

}  // namespace
}  // namespace heddle::nn
