// Convolutions against plain loops over the checkpoint's layout; how their weights lie in files.
#include "heddle/nn/images/convolution.h"

#include <gtest/gtest.h>

#include <cmath>

#include "heddle/io/safetensors.h"
#include "heddle/io/tensor_file.h"
#include "heddle/tensor/convert.h"
#include "tests/base/temporary.h"

namespace heddle::nn {
namespace {

std::vector<float> some_values(int64_t n, float step) {
  std::vector<float> values;
  for (int64_t i = 0; i < n; ++i) {
    values.push_back(std::sin(step * static_cast<float>(i * i % 1009)));
  }
  return values;
}

// A file with a convolution of 3 channels to 5, as PyTorch has it.
struct Checkpoint {
  static constexpr int64_t kOut = 5, kIn = 3;
  int64_t kernel;
  std::vector<float> weight, bias;
  TemporaryFolder folder;

  explicit Checkpoint(int64_t k)
      : kernel(k), weight(some_values(kOut * kIn * k * k, 0.7f)), bias(some_values(kOut, 0.3f)) {
    write_safetensors(
        path(), {{"conv.weight", DType::f32, {kOut, kIn, k, k}, std::as_bytes(std::span(weight))},
                 {"conv.bias", DType::f32, {kOut}, std::as_bytes(std::span(bias))}});
  }
  std::string path() const { return folder / "model.safetensors"; }
  // What it gives of images [height, width, channels], in double.
  std::vector<double> apply(const std::vector<float>& x, std::span<const ImageSize> sizes,
                            int64_t stride, int64_t padding) const {
    std::vector<double> y;
    int64_t first = 0;
    for (const ImageSize& size : sizes) {
      for (int64_t i = -padding; i + kernel <= size.height + padding; i += stride) {
        for (int64_t j = -padding; j + kernel <= size.width + padding; j += stride) {
          for (int64_t o = 0; o < kOut; ++o) y.push_back(sum(x, first, size, i, j, o));
        }
      }
      first += size.height * size.width;
    }
    return y;
  }

 private:
  double sum(const std::vector<float>& x, int64_t first, ImageSize size, int64_t i, int64_t j,
             int64_t o) const {
    double total = bias[o];
    for (int64_t c = 0; c < kIn; ++c) {
      for (int64_t a = 0; a < kernel; ++a) {
        for (int64_t b = 0; b < kernel; ++b) {
          const int64_t row = i + a, column = j + b;
          if (row < 0 || column < 0 || row >= size.height || column >= size.width) continue;
          total += double(weight[((o * kIn + c) * kernel + a) * kernel + b]) *
                   x[(first + row * size.width + column) * kIn + c];
        }
      }
    }
    return total;
  }
};

const std::vector<ImageSize> kSizes = {{5, 6}, {3, 3}, {4, 7}};
constexpr int64_t kPixels = 30 + 9 + 28;

class ConvolutionOf : public ::testing::TestWithParam<int64_t> {};

TEST_P(ConvolutionOf, weights_of_pytorch_give_its_sums_in_every_form) {
  const Checkpoint checkpoint(GetParam());
  const Convolution::Options o{.in = 3, .out = 5, .kernel = GetParam(), .stride = 2, .padding = 1};
  Parameters parameters(1);
  const Convolution layer(Scope(parameters) / "conv", o);
  parameters.load(SafetensorsFile::open(checkpoint.path()));
  const std::vector<float> x = some_values(kPixels * 3, 0.9f);
  const std::vector<double> want = checkpoint.apply(x, kSizes, 2, 1);
  const Tensor rows = Tensor::from(x, {kPixels, 3});
  Tensor bf16_rows = empty_like(rows, DType::bf16);
  kernels().convert(rows.rows(), bf16_rows.rows());
  const auto expect = [&](const Tensor& y, double tolerance) {
    const std::vector<float> got = y.to_floats();
    ASSERT_EQ(got.size(), want.size());
    for (size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], want[i], tolerance) << i;
  };
  expect(layer(rows, kSizes, {}), 1e-5);
  clear_tape();
  const NoGrad off;
  expect(layer(rows, kSizes, {}), 1e-5);
  expect(layer(bf16_rows, kSizes, {.compute = DType::bf16}), 0.08);  // of up to 10 terms of 1
  expect(layer(rows, kSizes, {.int8 = true}), 0.15);                 // each rounded to 1 / 254
}

TEST_P(ConvolutionOf, file_that_is_written_holds_what_was_read) {
  const Checkpoint checkpoint(GetParam());
  Parameters parameters = Parameters::to_be_loaded(200, checkpoint.path());
  const Convolution layer(Scope(parameters) / "conv", {.in = 3, .out = 5, .kernel = GetParam()});
  parameters.load(SafetensorsFile::open(checkpoint.path()));
  const std::string again = checkpoint.folder / "again.safetensors";
  parameters.save(again);
  const SafetensorsFile file = SafetensorsFile::open(again);
  EXPECT_EQ(file.info("conv.weight").shape, (std::vector<int64_t>{5, 3, GetParam(), GetParam()}));
  EXPECT_EQ(file.info("conv.weight").floats(), checkpoint.weight);
  parameters.for_each_tensor([&](const std::string& name, const Shape& shape, const float* x) {
    if (name != "conv.weight") return;
    EXPECT_EQ(shape, Shape({5, 3, GetParam(), GetParam()}));
    EXPECT_EQ(std::vector<float>(x, x + checkpoint.weight.size()), checkpoint.weight);
  });
}

INSTANTIATE_TEST_SUITE_P(Kernels, ConvolutionOf, ::testing::Values(1, 2, 3),
                         ::testing::PrintToStringParamName());

TEST(Convolution, window_of_a_pixel_is_used_where_the_file_has_it) {
  const Checkpoint checkpoint(1);
  Parameters parameters = Parameters::to_be_loaded(200, checkpoint.path());
  const Convolution layer(Scope(parameters) / "conv", {.in = 3, .out = 5});
  const auto file = open_weights(checkpoint.folder.path());
  parameters.load(*file);
  const StoredTensor* weight = file->find("conv.weight");
  EXPECT_EQ(static_cast<const void*>(parameters.all()[0]->value().raw()),
            static_cast<const void*>(weight->bytes.data()));
}

TEST(Convolution, weight_of_another_window_is_a_data_error_with_both_shapes) {
  const Checkpoint checkpoint(3);
  Parameters parameters(1);
  const Convolution layer(Scope(parameters) / "conv", {.in = 3, .out = 5, .kernel = 2});
  expect_error(ErrorKind::data, {"conv.weight", "[5, 3, 3, 3]", "[5, 3, 2, 2]"},
               [&] { parameters.load(SafetensorsFile::open(checkpoint.path())); });
}

}  // namespace
}  // namespace heddle::nn
