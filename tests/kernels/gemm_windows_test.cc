// Products whose rows are windows over pixels, against patches and sums in double, and the promise
// of equal bits.
#include "tests/kernels/kernel_case.h"

namespace heddle::kernel_test {
namespace {

/// Random images of one size and a weight, zeros where its lines are filled up.
struct WindowProblem {
  GemmWindows windows;
  int64_t out;
  Matrix pixels, weight, added;
  std::vector<float> bias;

  WindowProblem(const GemmWindows& w, int64_t outputs)
      : windows(w),
        out(outputs),
        pixels(w.images * w.size.height * w.size.width, w.channels, DType::bf16),
        weight(out, w.options.kernel * w.line(), DType::bf16),
        added(rows(), out, DType::bf16),
        bias(static_cast<size_t>(out)) {
    pixels.fill_normal(1), added.fill_normal(2);
    Matrix some(out, weight.width());
    some.fill_normal(3);
    weight.fill([&](int64_t r, int64_t c) {
      return c % w.line() < w.options.kernel * w.channels ? some.get(r, c) : 0;
    });
    for (int64_t c = 0; c < out; ++c)
      bias[static_cast<size_t>(c)] = 0.25f * static_cast<float>(c % 7);
  }

  int64_t rows() const {
    return windows.images * windows.outputs().height * windows.outputs().width;
  }
  GemmArgs args(Matrix& c) {
    return {.a = pixels,
            .b = weight,
            .c = c,
            .bias = bias.data(),
            .transpose_b = true,
            .windows = &windows};
  }
  std::string name() const {
    return fmt::format("{} images of {} x {} x {}, windows of {} by {}, padding {}, to {}",
                       windows.images, windows.size.height, windows.size.width, windows.channels,
                       windows.options.kernel, windows.options.stride, windows.options.padding,
                       out);
  }
};

/// Odd and even sides, one and several images, windows of one pixel to 7 x 7; runs that fill a step
/// of products and runs that do not; inner dimensions of one part, of several and of several
/// chunks.
std::vector<WindowProblem> problems() {
  struct Case {
    ImageSize size;
    int64_t images, channels;
    WindowOptions options;
    int64_t out;
  };
  const std::vector<Case> cases = {
      {{7, 5}, 3, 64, {3, 1, 1}, 64},  {{8, 8}, 2, 32, {3, 2, 1}, 40},
      {{9, 11}, 2, 3, {7, 2, 3}, 64},  {{30, 23}, 2, 16, {3, 1, 1}, 33},
      {{6, 7}, 2, 48, {1, 2, 0}, 96},  {{6, 7}, 1, 32, {3, 1, 0}, 32},
      {{4, 4}, 5, 24, {5, 3, 2}, 31},  {{1, 1}, 4, 32, {3, 1, 1}, 32},
      {{5, 4}, 2, 32, {3, 1, 2}, 64},  {{14, 14}, 2, 256, {3, 1, 1}, 70},
      {{7, 7}, 9, 512, {3, 1, 1}, 32}, {{12, 40}, 1, 1, {3, 1, 1}, 1},
      {{40, 3}, 2, 8, {4, 3, 1}, 64}};
  std::vector<WindowProblem> all;
  for (const Case& c : cases) {
    all.emplace_back(GemmWindows{c.size, c.images, c.channels, c.options}, c.out);
  }
  return all;
}

/// The rows by their definition, with nothing where a line is filled up.
Matrix patches_of(WindowProblem& p) {
  const GemmWindows& w = p.windows;
  const std::vector<ImageSize> sizes(static_cast<size_t>(w.images), w.size);
  Matrix patches(p.rows(), w.inner(), DType::bf16);
  definition::patch_rows({.x = p.pixels,
                          .y = patches,
                          .sizes = sizes.data(),
                          .images = w.images,
                          .options = w.options});
  return patches;
}

TEST(GemmWindows, equal_patches_times_the_weight) {
  if (!takes_windows(DType::bf16)) GTEST_SKIP() << "this unit multiplies patches";
  for (WindowProblem& p : problems()) {
    SCOPED_TRACE(p.name());
    const Matrix patches = patches_of(p);
    const int64_t line = p.windows.options.kernel * p.windows.channels;
    for (const bool has_tail : {false, true}) {
      Matrix c(p.rows(), p.out, DType::bf16, 2);
      GemmArgs args = p.args(c);
      if (has_tail) args.added = p.added, args.activation = Activation::relu;
      kernels().gemm(args);
      expect_near(
          c,
          [&](int64_t i, int64_t j) {
            double sum = p.bias[static_cast<size_t>(j)];
            for (int64_t l = 0; l < p.windows.inner(); ++l) {
              sum += patches.get(i, l) * p.weight.get(j, l / line * p.windows.line() + l % line);
            }
            if (!has_tail) return sum;
            return std::max(0.0, sum + p.added.get(i, j));
          },
          0x1p-7, 1 + std::sqrt(static_cast<double>(p.windows.inner())));
    }
  }
}

TEST(GemmWindows, definition_is_that_of_patches) {
  for (WindowProblem& p : problems()) {
    if (p.windows.inner() > 1000) continue;  // in plain loops
    SCOPED_TRACE(p.name());
    const Matrix patches = patches_of(p);
    const int64_t line = p.windows.options.kernel * p.windows.channels;
    Matrix c(p.rows(), p.out, DType::bf16);
    definition::gemm(p.args(c));
    expect_near(
        c,
        [&](int64_t i, int64_t j) {
          double sum = p.bias[static_cast<size_t>(j)];
          for (int64_t l = 0; l < p.windows.inner(); ++l) {
            sum += patches.get(i, l) * p.weight.get(j, l / line * p.windows.line() + l % line);
          }
          return sum;
        },
        0x1p-8, 0.01);
  }
}

TEST(GemmWindows, an_image_has_the_same_bits_alone_with_a_kept_weight_and_in_place) {
  if (!takes_windows(DType::bf16)) GTEST_SKIP() << "this unit multiplies patches";
  for (WindowProblem& p : problems()) {
    SCOPED_TRACE(p.name());
    Matrix all(p.rows(), p.out, DType::bf16), kept = all, alone = all, in_place = p.added;
    GemmArgs args = p.args(all);
    args.added = p.added, args.activation = Activation::relu;
    kernels().gemm(args);
    args.c = kept, args.constant_b = new_constant();
    for (int i = 0; i < 3; ++i) kernels().gemm(args);
    EXPECT_TRUE(kept == all);
    args.c = in_place, args.added = in_place;
    kernels().gemm(args);
    EXPECT_TRUE(in_place == all);
    forget_packed(args.constant_b);

    GemmWindows one = p.windows;
    one.images = 1;
    const int64_t pixels = p.pixels.rows() / p.windows.images, rows = p.rows() / p.windows.images;
    for (int64_t i = 0; i < p.windows.images; ++i) {
      GemmArgs part = p.args(alone);
      part.a = p.pixels.view().slice(i * pixels, pixels), part.windows = &one;
      part.c = alone.view().slice(i * rows, rows);
      part.added = p.added.view().slice(i * rows, rows), part.activation = Activation::relu;
      kernels().gemm(part);
    }
    EXPECT_TRUE(alone == all);
  }
}

TEST(GemmWindows, where_there_are_none_they_are_refused) {
  WindowProblem p(GemmWindows{{4, 4}, 1, 32, {3, 1, 1}}, 32);
  Matrix c(p.rows(), p.out, DType::bf16);
  GemmArgs wrong = p.args(c);
  wrong.c.rows -= 1;
  EXPECT_THROW(kernels().gemm(wrong), Error);
  wrong = p.args(c), wrong.activation = Activation::gelu;
  EXPECT_THROW(kernels().gemm(wrong), Error);
  if (!takes_windows(DType::bf16)) {
    EXPECT_THROW(kernels().gemm(p.args(c)), Error);
  }
  EXPECT_FALSE(takes_windows(DType::f32));
}

}  // namespace
}  // namespace heddle::kernel_test
