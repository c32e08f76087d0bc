// What the cases of patches.h do not say: identity, ties, NaN, single images, errors.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>

#include "heddle/base/rng.h"
#include "heddle/ops/elementwise.h"
#include "heddle/ops/images/patches.h"
#include "heddle/ops/reduce.h"
#include "tests/base/temporary.h"

namespace heddle {
namespace {

TEST(PatchRows, window_of_one_pixel_is_the_input_itself) {
  const Tensor x = Tensor::from(std::vector<float>{1, 2, 3, 4, 5, 6}, {3, 2});
  const std::vector<ImageSize> sizes = {{1, 2}, {1, 1}};
  EXPECT_EQ(patch_rows(x, sizes, {}).raw(), x.raw());
  EXPECT_NE(patch_rows(x, sizes, {.stride = 2}).raw(), x.raw());
}

TEST(PatchRows, columns_of_a_wider_tensor_are_read_where_they_lie) {
  const Tensor x = Tensor::from(std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8}, {4, 2});
  const std::vector<ImageSize> sizes = {{2, 2}};
  EXPECT_EQ(patch_rows(x.slice(1, 1, 1), sizes, {.kernel = 2}).to_floats(),
            (std::vector<float>{2, 4, 6, 8}));
}

TEST(Windows, image_has_the_bits_it_has_alone_in_any_batch) {
  RngStream random(make_key(1, 2, 3));
  std::vector<float> values;
  for (int i = 0; i < (35 + 12 + 64) * 21; ++i) values.push_back(random.uniform());
  const std::vector<ImageSize> sizes = {{5, 7}, {4, 3}, {8, 8}};
  const Tensor all = Tensor::from(values, {111, 21});
  const WindowOptions o{3, 2, 1};
  const std::vector<float> patches = patch_rows(all, sizes, o).to_floats();
  const std::vector<float> pool = max_pool(all, sizes, o).to_floats();
  const std::vector<float> mean =
      segment_mean(all, Segments::from_lengths(std::vector<int64_t>{35, 12, 64})).to_floats();
  const Tensor own = all.slice(0, 35, 12);
  const std::vector<ImageSize> one = {sizes[1]};
  const auto part = [](const std::vector<float>& x, int64_t begin, int64_t count) {
    return std::vector<float>(x.begin() + begin, x.begin() + begin + count);
  };
  EXPECT_EQ(patch_rows(own, one, o).to_floats(), part(patches, 12 * 189, 4 * 189));
  EXPECT_EQ(max_pool(own, one, o).to_floats(), part(pool, 12 * 21, 4 * 21));
  EXPECT_EQ(segment_mean(own, Segments::uniform(1, 12)).to_floats(), part(mean, 21, 21));
}

// 96 images of 9 x 12 pixels and 40 channels have 15 MB of patches: several blocks.
TEST(Convolution, blocks_of_images_are_one_product) {
  RngStream random(make_key(1, 2, 3));
  const auto tensor = [&](const Shape& shape, Leaf& leaf) {
    std::vector<float> values;
    for (int64_t i = 0; i < shape.elements(); ++i) values.push_back(random.uniform() - 0.5f);
    return Tensor::from(values, shape).with_leaf(&leaf);
  };
  const std::vector<ImageSize> sizes(96, {9, 12});
  const WindowOptions o{3, 1, 1};
  std::array<Leaf, 2> x, w, b;
  const Tensor pixels = tensor({96 * 108, 40}, x[0]), weight = tensor({24, 360}, w[0]);
  const Tensor bias = tensor({24}, b[0]);
  const Tensor y = convolution(pixels, sizes, weight, bias, o);
  const Tensor want = linear(patch_rows(pixels.with_leaf(&x[1]), sizes, o), weight.with_leaf(&w[1]),
                             bias.with_leaf(&b[1]));
  EXPECT_EQ(y.to_floats(), want.to_floats());
  Leaf none;
  const Tensor to = tensor({96 * 108, 24}, none).detached();
  backward(dot(y, to));
  clear_tape();
  const Tensor again = linear(patch_rows(pixels.with_leaf(&x[1]), sizes, o),
                              weight.with_leaf(&w[1]), bias.with_leaf(&b[1]));
  backward(dot(again, to));
  EXPECT_EQ(x[0].grad.to_floats(), x[1].grad.to_floats());
  EXPECT_EQ(b[0].grad.to_floats(), b[1].grad.to_floats());
  const std::vector<float> dw = w[0].grad.to_floats(), plain = w[1].grad.to_floats();
  for (size_t i = 0; i < dw.size(); ++i) ASSERT_NEAR(dw[i], plain[i], 1e-4) << i;  // of about 10
}

TEST(MaxPool, gradient_goes_to_the_first_of_equals) {
  Leaf leaf;
  const Tensor x = Tensor::from(std::vector<float>{1, 2, 2, 2}, {4, 1}).with_leaf(&leaf);
  const std::vector<ImageSize> sizes = {{2, 2}};
  backward(sum(max_pool(x, sizes, {.kernel = 2})));
  EXPECT_EQ(leaf.grad.to_floats(), (std::vector<float>{0, 1, 0, 0}));
}

TEST(MaxPool, padding_is_below_every_value) {
  const Tensor x = Tensor::from(std::vector<float>{-1, -2, -3, -4}, {4, 1});
  const std::vector<ImageSize> sizes = {{2, 2}};
  EXPECT_EQ(max_pool(x, sizes, {3, 2, 1}).to_floats(), std::vector<float>{-1});
}

TEST(MaxPool, nan_is_the_largest) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<ImageSize> sizes = {{2, 2}, {2, 2}};
  const Tensor x = Tensor::from(std::vector<float>{nan, 5, 6, 7, 5, 6, nan, 7}, {8, 1});
  Leaf leaf;
  const Tensor y = max_pool(x.with_leaf(&leaf), sizes, {.kernel = 2});
  EXPECT_TRUE(std::isnan(y.to_floats()[0]));
  EXPECT_TRUE(std::isnan(y.to_floats()[1]));
  backward(sum(y));
  EXPECT_EQ(leaf.grad.to_floats(), (std::vector<float>{1, 0, 0, 0, 0, 0, 1, 0}));
}

TEST(Convolution, what_is_added_goes_in_before_the_activation) {
  const NoGrad off;
  const std::vector<ImageSize> sizes = {{9, 7}, {4, 8}};
  const auto some = [](const Shape& shape, float step) {
    std::vector<float> values;
    for (int64_t i = 0; i < shape.elements(); ++i) {
      values.push_back(std::sin(static_cast<float>(i) * step));
    }
    return Tensor::from(values, shape);
  };
  for (const DType dtype : {DType::f32, DType::bf16}) {
    for (const WindowOptions& o : {WindowOptions{3, 1, 1}, WindowOptions{1, 1, 0}}) {
      for (const int64_t channels : {5, 600}) {  // of a few and of several chunks of sums
        const Tensor x = cast(some({95, channels}, 0.7f), dtype);
        const Tensor w = cast(some({33, o.kernel * o.kernel * channels}, 0.3f), dtype);
        const Tensor added = cast(some({95, 33}, 0.11f), dtype), bias = some({33}, 0.5f);
        LinearOptions options{.constant_w = new_constant()};
        const Tensor apart =
            activation(Activation::relu, add(convolution(x, sizes, w, bias, o, options), added));
        options.added = added, options.activation = Activation::relu;
        EXPECT_EQ(convolution(x, sizes, w, bias, o, options).to_floats(), apart.to_floats())
            << dtype_name(dtype) << ' ' << o.kernel << ' ' << channels;
        forget_packed(options.constant_w);
      }
    }
  }
}

TEST(Windows, sizes_that_do_not_fit_are_shape_errors) {
  const Tensor x = Tensor::zeros({6, 1}, DType::f32);
  const std::vector<ImageSize> sizes = {{2, 3}}, others = {{2, 2}};
  expect_error(ErrorKind::shape, {"[6, 1]", "4 pixels"},
               [&] { patch_rows(x, others, {.kernel = 2}); });
  expect_error(ErrorKind::shape, {"2 x 3", "4 x 4"}, [&] { patch_rows(x, sizes, {.kernel = 4}); });
  expect_error(ErrorKind::shape, {"[6, 1]", "2 x 2", "[5, 3]"}, [&] {
    convolution(x, sizes, Tensor::zeros({5, 3}, DType::f32), {}, {.kernel = 2});
  });
  expect_error(ErrorKind::shape, {"-2 x -3 pixels"}, [&] {
    patch_rows(x, std::vector<ImageSize>{{-2, -3}}, {});
  });
  expect_error(ErrorKind::shape, {"0 apart"}, [&] { patch_rows(x, sizes, {.stride = 0}); });
  expect_error(ErrorKind::shape, {"padding 2"}, [&] { max_pool(x, sizes, {2, 1, 2}); });
  expect_error(ErrorKind::shape, {"segment 1 has no rows"}, [&] {
    segment_mean(x, Segments::from_lengths(std::vector<int64_t>{6, 0}));
  });
}

TEST(Windows, output_sizes_are_those_of_pytorch) {
  EXPECT_EQ(output_size({224, 224}, {7, 2, 3}), (ImageSize{112, 112}));
  EXPECT_EQ(output_size({15, 30}, {3, 2, 1}), (ImageSize{8, 15}));
  EXPECT_EQ(output_size({10, 14}, {4, 4, 0}), (ImageSize{2, 3}));
}

}  // namespace
}  // namespace heddle
