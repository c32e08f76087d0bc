// Windows over images against their definition in plain loops, on every instruction set.
#include "tests/kernels/kernel_case.h"

namespace heddle::kernel_test {
namespace {

const std::vector<ImageSize> kSizes = {{5, 7}, {3, 3}, {1, 9}, {8, 6}};
constexpr int64_t kPixels = 35 + 9 + 9 + 48;

const std::vector<WindowOptions> kOptions = {{3, 1, 1}, {3, 2, 1}, {2, 2, 1}, {1, 2, 0}, {5, 3, 4}};

int64_t windows_of(const WindowOptions& o) {
  int64_t n = 0;
  for (const ImageSize& size : kSizes) n += o.windows(size.height) * o.windows(size.width);
  return n;
}

// Channels around the vectors of 4, 8, 16 and, of bf16, 32 elements, by themselves and in runs.
void for_each_windows(
    const std::function<void(const WindowOptions&, int64_t channels, DType dtype)>& f) {
  for_each_target([&] {
    for (const DType dtype : computed_dtypes()) {
      for (const WindowOptions& o : kOptions) {
        for (const int64_t channels : {1, 2, 3, 4, 5, 7, 8, 11, 15, 16, 17, 21, 32, 33, 64, 65}) {
          SCOPED_TRACE(std::string(dtype_name(dtype)) + ", kernel " + std::to_string(o.kernel) +
                       ", channels " + std::to_string(channels));
          f(o, channels, dtype);
          if (testing::Test::HasFailure()) return;
        }
      }
    }
  });
}

WindowArgs args_of(Matrix& x, Matrix& y, const WindowOptions& o, uint8_t* chosen = nullptr) {
  return {.x = x,
          .y = y,
          .sizes = kSizes.data(),
          .images = static_cast<int64_t>(kSizes.size()),
          .options = o,
          .chosen = chosen};
}

TEST(PatchRows, every_width_and_dtype_is_what_the_definition_says) {
  for_each_windows([](const WindowOptions& o, int64_t channels, DType dtype) {
    Matrix x(kPixels, channels, dtype);
    x.fill_normal(1);
    Matrix y(windows_of(o), o.kernel * o.kernel * channels, dtype, 5), want = y;
    kernels().patch_rows(args_of(x, y, o));
    definition::patch_rows(args_of(x, want, o));
    EXPECT_TRUE(y == want);
  });
}

// Up to 9 values are added in f32.
TEST(PatchRowsBackward, every_width_and_dtype_is_what_the_definition_says) {
  for_each_windows([](const WindowOptions& o, int64_t channels, DType dtype) {
    Matrix y(windows_of(o), o.kernel * o.kernel * channels, dtype, 5);
    y.fill_normal(1);
    Matrix x(kPixels, channels, dtype), want = x;
    kernels().patch_rows_backward(args_of(x, y, o));
    definition::patch_rows_backward(args_of(want, y, o));
    expect_near(
        x, [&](int64_t r, int64_t c) { return want.get(r, c); }, 4 * epsilon(dtype), 4);
  });
}

TEST(MaxPool, every_width_and_dtype_is_what_the_definition_says) {
  for_each_windows([](const WindowOptions& o, int64_t channels, DType dtype) {
    Matrix x(kPixels, channels, dtype);
    x.fill([](int64_t r, int64_t c) { return r * (r + 5) % 7 - c % 3; });  // there are equals
    Matrix y(windows_of(o), channels, dtype, 5), want = y;
    std::vector<uint8_t> chosen(static_cast<size_t>(windows_of(o) * channels)), same = chosen;
    kernels().max_pool(args_of(x, y, o, chosen.data()));
    definition::max_pool(args_of(x, want, o, same.data()));
    EXPECT_TRUE(y == want);
    EXPECT_EQ(chosen, same);
    Matrix dx(kPixels, channels, dtype), dwant = dx;
    y.fill_normal(2);
    kernels().max_pool_backward(args_of(dx, y, o, chosen.data()));
    definition::max_pool_backward(args_of(dwant, y, o, chosen.data()));
    expect_near(
        dx, [&](int64_t r, int64_t c) { return dwant.get(r, c); }, 4 * epsilon(dtype), 4);
  });
}

TEST(Windows, lines_have_the_same_bits_on_any_thread) {
  expect_same_bits_for_any_threads([] {
    const std::vector<ImageSize> sizes(40, {9, 11});
    const WindowOptions o{3, 2, 1};
    Matrix x(40 * 99, 33), y(40 * 30, 9 * 33), dx(40 * 99, 33);
    x.fill_normal(1);
    WindowArgs args{.x = x, .y = y, .sizes = sizes.data(), .images = 40, .options = o};
    kernels().patch_rows(args);
    args.x = dx;
    kernels().patch_rows_backward(args);
    return std::pair(y, dx);
  });
}

TEST(SegmentMean, every_width_and_dtype_matches_float64) {
  const std::vector<int64_t> offsets = {0, 1, 4, 300};
  for_each_case([&](int64_t width, DType dtype) {
    Matrix x(300, width, dtype, 3), y(3, width, dtype, 1), dx(300, width, dtype, 2);
    x.fill_normal(1);
    kernels().segment_mean(x, offsets.data(), y);
    const auto mean = [&](int64_t s, int64_t c) {
      double sum = 0;
      for (int64_t r = offsets[s]; r < offsets[s + 1]; ++r) sum += x.get(r, c);
      return sum / static_cast<double>(offsets[s + 1] - offsets[s]);
    };
    expect_near(y, mean, 2 * epsilon(dtype));
    kernels().segment_mean_backward(y, offsets.data(), dx);
    expect_near(
        dx,
        [&](int64_t r, int64_t c) {
          const int64_t s = r < 1 ? 0 : r < 4 ? 1 : 2;
          return y.get(s, c) / static_cast<double>(offsets[s + 1] - offsets[s]);
        },
        2 * epsilon(dtype), 0);
  });
}

}  // namespace
}  // namespace heddle::kernel_test
