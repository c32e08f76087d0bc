// Winograd's transforms: together with products by element they are the convolution and its
// gradients, and every CPU's are what the definition says. Small whole numbers, which bf16 holds.
#include <cmath>

#include "tests/kernels/kernel_case.h"

namespace heddle::kernel_test {
namespace {

const std::vector<ImageSize> kSizes = {{5, 7}, {3, 3}, {4, 6}};
constexpr int64_t kPixels = 35 + 9 + 24;

// From one place of the tiles to the next there is room for one more.
struct Sides {
  int64_t padding, tiles = 0, outputs = 0;
  explicit Sides(int64_t pad) : padding(pad) {
    const WinogradArgs args{.sizes = kSizes.data(), .padding = pad};
    for (int64_t i = 0; i < std::ssize(kSizes); ++i) {
      tiles += args.grid(i).height * args.grid(i).width;
      outputs += args.outputs(i).height * args.outputs(i).width;
    }
  }
  int64_t rows() const { return 16 * (tiles + 1); }
  WinogradArgs args(Matrix& pixels, Matrix& of_tiles) const {
    return {.pixels = pixels,
            .tiles = of_tiles,
            .sizes = kSizes.data(),
            .images = std::ssize(kSizes),
            .padding = padding};
  }
};

double whole(int64_t r, int64_t c) { return static_cast<double>((r * 7 + c * 5) % 11 - 5); }

using Kernel = void (*)(const WinogradArgs&);

// Writes tiles from pixels.
void expect_tiles(Kernel kernel, Kernel definition, bool of_outputs) {
  for (const int64_t padding : {0, 1, 2}) {
    const Sides sides(padding);
    for (const int64_t channels : {1, 15, 16, 17, 64}) {
      Matrix pixels(of_outputs ? sides.outputs : kPixels, channels, DType::bf16);
      pixels.fill(whole);
      Matrix tiles(sides.rows(), channels, DType::bf16, 3), want = tiles;
      kernel(sides.args(pixels, tiles)), definition(sides.args(pixels, want));
      EXPECT_TRUE(tiles == want) << padding << " " << channels;
    }
  }
}

TEST(Winograd, inputs_are_what_the_definition_says) {
  expect_tiles(kernels().winograd_inputs, definition::winograd_inputs, false);
}

TEST(Winograd, gradients_of_outputs_are_what_the_definition_says) {
  expect_tiles(kernels().winograd_outputs_backward, definition::winograd_outputs_backward, true);
}

TEST(Winograd, outputs_are_what_the_definition_says) {
  for (const int64_t padding : {0, 1, 2}) {
    const Sides sides(padding);
    for (const int64_t channels : {1, 15, 16, 17, 64}) {
      for (const bool relu : {false, true}) {
        Matrix tiles(sides.rows(), channels);
        tiles.fill(whole);
        std::vector<float> bias(static_cast<size_t>(channels), 2);
        Matrix pixels(sides.outputs, channels, DType::bf16), want = pixels, added = pixels;
        added.fill([](int64_t r, int64_t c) { return 8 * whole(c, r); });
        const auto args = [&](Matrix& to) {
          WinogradArgs a = sides.args(to, tiles);
          a.bias = bias.data(), a.relu = relu;
          if (relu) a.added = added;
          return a;
        };
        kernels().winograd_outputs(args(pixels)), definition::winograd_outputs(args(want));
        EXPECT_TRUE(pixels == want) << padding << " " << channels << " " << relu;
      }
    }
  }
}

TEST(Winograd, weights_and_their_gradients_are_what_the_definition_says) {
  for (const int64_t in : {1, 16, 17, 64}) {
    Matrix w(5, 9 * in, DType::bf16), tiles(16 * 5, in, DType::bf16), want = tiles;
    w.fill([](int64_t r, int64_t c) { return 4 * whole(r, c); });
    kernels().winograd_weights({.w = w, .tiles = tiles});
    definition::winograd_weights({.w = w, .tiles = want});
    EXPECT_TRUE(tiles == want) << in;
    Matrix sums(16 * 5, in), dw(5, 9 * in), want_dw = dw;
    sums.fill([](int64_t r, int64_t c) { return 4 * whole(r, c); });
    kernels().winograd_weights_backward({.w = dw, .tiles = sums});
    definition::winograd_weights_backward({.w = want_dw, .tiles = sums});
    EXPECT_TRUE(dw == want_dw) << in;
  }
}

// One channel in, one out: a product by element of transformed inputs and weights.
TEST(Winograd, transforms_around_products_are_a_convolution) {
  for (const int64_t padding : {0, 1, 2}) {
    const Sides sides(padding);
    Matrix x(kPixels, 1, DType::bf16), w(1, 9, DType::bf16);
    x.fill(whole), w.fill([](int64_t r, int64_t c) { return 4 * whole(r, c); });
    Matrix inputs(sides.rows(), 1, DType::bf16), weights(16, 1, DType::bf16);
    kernels().winograd_inputs(sides.args(x, inputs));
    kernels().winograd_weights({.w = w, .tiles = weights});
    Matrix products(sides.rows(), 1), y(sides.outputs, 1, DType::bf16);
    products.fill([&](int64_t r, int64_t) {
      return inputs.get(r, 0) * weights.get(r / (sides.tiles + 1), 0);
    });
    kernels().winograd_outputs(sides.args(y, products));
    int64_t first = 0, at = 0;
    for (const ImageSize& size : kSizes) {
      for (int64_t row = -padding; row + 3 <= size.height + padding; ++row) {
        for (int64_t column = -padding; column + 3 <= size.width + padding; ++column, ++at) {
          double sum = 0;
          for (int64_t i = 0; i < 9; ++i) {
            const int64_t pixel = definition::pixel_at(row + i / 3, column + i % 3, first, size);
            if (pixel >= 0) sum += x.get(pixel, 0) * w.get(0, i);
          }
          EXPECT_NEAR(y.get(at, 0), sum, std::fabs(sum) / 256) << at;
        }
      }
      first += size.height * size.width;
    }
    EXPECT_EQ(at, sides.outputs);
  }
}

}  // namespace
}  // namespace heddle::kernel_test
