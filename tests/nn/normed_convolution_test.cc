// A norm folded into the convolution before it: in bf16 as in f32, whichever way the product goes.
#include "heddle/nn/images/normed_convolution.h"

#include <gtest/gtest.h>

#include <cmath>

namespace heddle::nn {
namespace {

const std::vector<ImageSize> kSizes = {{5, 6}, {3, 3}, {8, 7}};
constexpr int64_t kPixels = 30 + 9 + 56, kChannels = 128;

Tensor waves(int64_t rows, int64_t columns, float step) {
  std::vector<float> values;
  for (int64_t i = 0; i < rows * columns; ++i) {
    values.push_back(std::sin(step * static_cast<float>(i * i % 1009)));
  }
  return Tensor::from(values, {rows, columns});
}
Tensor as_bf16(const Tensor& x) {
  Tensor y = empty_like(x, DType::bf16);
  kernels().convert(x.rows(), y.rows());
  return y;
}

// 128 channels to 128 by 3 x 3, which has a product of its own on some CPUs.
struct Layer {
  Parameters parameters{1};
  NormedConvolution layer{Scope(parameters) / "convolution",
                          Scope(parameters) / "norm",
                          {.in = kChannels, .out = kChannels, .kernel = 3, .padding = 1},
                          {}};

  // Gives a parameter other values, around 1.
  void change(const std::string& name, float by) {
    for (const auto& p : parameters.all()) {
      if (!p->name().ends_with(name)) continue;
      for (int64_t i = 0; i < p->elements(); ++i) {
        p->value().data<float>()[i] = 1 + by * std::sin(static_cast<float>(i));
      }
      p->changed(true);
      return;
    }
    ADD_FAILURE() << name;
  }
  std::vector<float> operator()(DType dtype, const Tensor& x, std::span<const ImageSize> sizes,
                                const NormTail& tail) const {
    const bool is_bf16 = dtype == DType::bf16;
    NormTail same = tail;
    if (is_bf16 && tail.added.defined()) same.added = as_bf16(tail.added);
    return layer(is_bf16 ? as_bf16(x) : x, sizes, same, {.compute = dtype}).to_floats();
  }
  // How far bf16 is from f32, of its root mean square.
  double error(const Tensor& x, const NormTail& tail) const {
    const std::vector<float> want = (*this)(DType::f32, x, kSizes, tail);
    const std::vector<float> got = (*this)(DType::bf16, x, kSizes, tail);
    EXPECT_EQ(got.size(), want.size());
    double squares = 0, of_error = 0;
    for (size_t i = 0; i < want.size(); ++i) {
      squares += want[i] * want[i], of_error += std::pow(got[i] - want[i], 2);
    }
    return std::sqrt(of_error / squares);
  }
};

TEST(NormedConvolution, bf16_is_near_f32_with_every_tail) {
  const NoGrad off;
  Layer of;
  of.change("norm.weight", 0.5f), of.change("running_var", 0.3f), of.change("running_mean", 0.1f);
  const Tensor x = waves(kPixels, kChannels, 0.9f), added = waves(kPixels, kChannels, 0.7f);
  EXPECT_LT(of.error(x, {}), 0.01);
  EXPECT_LT(of.error(x, {.activation = Activation::relu}), 0.01);
  EXPECT_LT(of.error(x, {.activation = Activation::gelu}), 0.01);
  EXPECT_LT(of.error(x, {.added = added, .activation = Activation::relu}), 0.01);
  EXPECT_LT(of.error(x, {.added = added}), 0.01);
}

TEST(NormedConvolution, what_is_folded_follows_weight_and_norm) {
  const NoGrad off;
  Layer of;
  const Tensor x = waves(kPixels, kChannels, 0.9f);
  for (const std::string name : {"convolution.weight", "norm.bias", "norm.weight", "running_var"}) {
    const std::vector<float> before = of(DType::bf16, x, kSizes, {});
    of.change(name, 0.5f);
    EXPECT_NE(of(DType::bf16, x, kSizes, {}), before) << name;
    EXPECT_LT(of.error(x, {}), 0.01) << name;
  }
}

TEST(NormedConvolution, image_has_the_same_bits_alone) {
  const NoGrad off;
  const Layer of;
  const Tensor x = waves(kPixels, kChannels, 0.9f);
  for (const DType dtype : {DType::f32, DType::bf16}) {
    const std::vector<float> all = of(dtype, x, kSizes, {});
    const ImageSize last = kSizes.back();
    const int64_t pixels = last.height * last.width;
    const Tensor alone = Tensor::empty({pixels, kChannels}, DType::f32);
    kernels().convert(x.rows().slice(kPixels - pixels, pixels), alone.rows());
    EXPECT_EQ(of(dtype, alone, {&last, 1}, {}),
              std::vector<float>(all.end() - pixels * kChannels, all.end()));
  }
}

// recompute() runs a layer twice, first without recording: both passes must compute the same.
TEST(Convolution, bf16_has_the_same_bits_with_and_without_a_gradient) {
  Parameters parameters{1};
  const Convolution of(Scope(parameters) / "of",
                       {.in = kChannels, .out = 64, .kernel = 3, .padding = 1});
  const Tensor x = as_bf16(waves(kPixels, kChannels, 0.9f));
  const nn::Run run{.compute = DType::bf16, .recompute = true};
  const std::vector<float> recorded = of(x, kSizes, run).to_floats();
  const NoGrad off;
  EXPECT_EQ(of(x, kSizes, run).to_floats(), recorded);
}

}  // namespace
}  // namespace heddle::nn
