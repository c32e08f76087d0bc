// Activations against float64, their slopes against finite differences, dropout bit by bit.
#include "tests/kernels/kernel_case.h"

namespace heddle::kernel_test {
namespace {

const std::vector<Activation> kAll = {Activation::none,     Activation::relu, Activation::gelu,
                                      Activation::gelu_new, Activation::silu, Activation::tanh};

double value(Activation kind, double x) {
  switch (kind) {
    case Activation::none: return x;
    case Activation::relu: return std::max(x, 0.0);
    case Activation::gelu: return 0.5 * x * std::erfc(-x * std::sqrt(0.5));
    case Activation::gelu_new:
      return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
    case Activation::silu: return x / (1 + std::exp(-x));
    case Activation::tanh: return std::tanh(x);
  }
  return 0;
}

double slope(Activation kind, double x) {
  constexpr double kStep = 1e-5;
  if (kind == Activation::relu) return x > 0 ? 1 : 0;  // not differentiable at 0
  return (value(kind, x + kStep) - value(kind, x - kStep)) / (2 * kStep);
}

TEST(Activation, every_width_dtype_and_stride_matches_float64) {
  for_each_case([](int64_t width, DType dtype) {
    for (Activation kind : kAll) {
      Matrix x(3, width, dtype, 3), y(3, width, dtype, 1);
      x.fill_normal(1, 2);
      kernels().activation(kind, x, {}, y);
      // f32: 4 units of the last place where the result is large, of 1/8 where it is small
      expect_near(
          y, [&](int64_t r, int64_t c) { return value(kind, x.get(r, c)); },
          8 * 0x1p-24 + (dtype == DType::f32 ? 0 : epsilon(dtype)), 0.125);
    }
  });
}

TEST(Activation, the_slope_matches_finite_differences) {
  for_each_case([](int64_t width, DType dtype) {
    for (Activation kind : kAll) {
      Matrix x(3, width, dtype, 3), dy(3, width, dtype), dx(3, width, dtype, 1);
      x.fill_normal(1, 2);
      dy.fill_normal(2);
      kernels().activation_backward(kind, x, dy, {}, dx);
      expect_near(
          dx, [&](int64_t r, int64_t c) { return slope(kind, x.get(r, c)) * dy.get(r, c); },
          1e-6 + (dtype == DType::f32 ? 0 : epsilon(dtype)));
    }
  });
}

TEST(Activation, far_arguments_stay_finite_and_reach_their_limits) {
  for_each_case([](int64_t, DType dtype) {
    Matrix x(1, 4, dtype), y(1, 4, dtype), dx(1, 4, dtype), dy(1, 4, dtype);
    const double at[] = {-9984, -30, 30, 9984};  // bf16 has them
    x.fill([&](int64_t, int64_t c) { return at[c]; });
    dy.fill([](int64_t, int64_t) { return 1; });
    for (Activation kind : {Activation::gelu, Activation::gelu_new, Activation::silu,
                            Activation::tanh, Activation::relu}) {
      kernels().activation(kind, x, {}, y);
      kernels().activation_backward(kind, x, dy, {}, dx);
      const bool saturates = kind == Activation::tanh;
      for (int64_t c = 0; c < 4; ++c) {
        EXPECT_NEAR(y.get(0, c), saturates ? (c < 2 ? -1 : 1) : (c < 2 ? 0 : at[c]), 1e-11);
        EXPECT_NEAR(dx.get(0, c), saturates || c < 2 ? 0 : 1, 1e-11);
      }
    }
  });
}

TEST(Activation, a_gate_of_nothing_lets_nothing_through) {
  for_each_case([](int64_t width, DType dtype) {
    Matrix x(1, width, dtype), y(1, width, dtype), dx(1, width, dtype), dy(1, width, dtype);
    const double at[] = {-3e38, -1e10, -200};
    x.fill([&](int64_t, int64_t c) { return at[c % 3]; });
    dy.fill([](int64_t, int64_t) { return 1; });
    for (const Activation kind : {Activation::gelu_new, Activation::silu}) {
      kernels().activation(kind, x, {}, y);
      kernels().activation_backward(kind, x, dy, {}, dx);
      for (int64_t c = 0; c < width; ++c) {
        EXPECT_EQ(y.get(0, c), 0);
        EXPECT_EQ(dx.get(0, c), 0);
      }
    }
  });
}

TEST(Activation, nan_is_not_hidden) {
  for_each_case([](int64_t width, DType dtype) {
    Matrix x(1, width, dtype), y(1, width, dtype);
    x.fill([](int64_t, int64_t) { return std::nan(""); });
    for (Activation kind : kAll) {
      kernels().activation(kind, x, {}, y);
      for (int64_t c = 0; c < width; ++c) EXPECT_TRUE(std::isnan(y.get(0, c)));
    }
  });
}

TEST(Activation, gelu_of_bf16_keeps_the_digits_of_its_tail) {
  for_each_target([] {
    constexpr int64_t kWidth = 601;
    Matrix x(1, kWidth, DType::bf16), y(1, kWidth, DType::bf16), one = x, slope = x;
    x.fill([](int64_t, int64_t c) { return -0.01 * static_cast<double>(c); });
    one.fill([](int64_t, int64_t) { return 1; });
    for (const Activation kind : {Activation::gelu, Activation::gelu_new}) {
      kernels().activation(kind, x, {}, y);
      kernels().activation_backward(kind, x, one, {}, slope);
      for (int64_t c = 0; c < kWidth; ++c) {
        constexpr double kStep = 1e-4;
        const double at = x.get(0, c), want = value(kind, at);
        if (at <= -6) break;
        EXPECT_NEAR(y.get(0, c), want, 0.006 * std::fabs(want)) << at;
        const double rise = (value(kind, at + kStep) - value(kind, at - kStep)) / (2 * kStep);
        EXPECT_NEAR(slope.get(0, c), rise, 0.004 * std::fabs(rise) + 4e-6) << at;
      }
    }
  });
}

TEST(Dropout, mask_equals_the_scalar_definition) {
  for_each_case([](int64_t width, DType dtype) {
    constexpr int64_t kRows = 7;
    for (float p : {0.1f, 0.5f, 0.97f}) {
      const DropoutCase d(kRows, p);
      Matrix x(kRows, width, dtype, 3), y(kRows, width, dtype, 1);
      x.fill([](int64_t, int64_t) { return 1; });
      kernels().dropout(x, d.dropout, y);
      Matrix want(kRows, width, dtype, 1);
      want.fill([&](int64_t r, int64_t c) { return d.dropout.factor(r, c); });
      ASSERT_TRUE(y == want);
    }
  });
}

TEST(Dropout, fraction_and_mean_are_as_asked) {
  constexpr int64_t kRows = 500, kWidth = 1000;
  const DropoutCase d(kRows, 0.3f);
  Matrix x(kRows, kWidth), y(kRows, kWidth);
  x.fill([](int64_t, int64_t) { return 1; });
  kernels().dropout(x, d.dropout, y);
  double dropped = 0, sum = 0;
  for (int64_t r = 0; r < kRows; ++r) {
    for (int64_t c = 0; c < kWidth; ++c) {
      dropped += y.get(r, c) == 0;
      sum += y.get(r, c);
    }
  }
  const double n = kRows * kWidth;  // 4 standard deviations
  EXPECT_NEAR(dropped / n, 0.3, 4 * std::sqrt(0.3 * 0.7 / n));
  EXPECT_NEAR(sum / n, 1, 4 * std::sqrt(0.3 / 0.7 / n));
}

TEST(Dropout, a_dropped_infinity_is_zero) {
  const DropoutCase d(1, 0.5f);
  for_each_target([&] {
    Matrix x(1, 64), y(1, 64);
    x.fill([](int64_t, int64_t) { return HUGE_VAL; });
    kernels().dropout(x, d.dropout, y);
    for (int64_t c = 0; c < 64; ++c) {
      EXPECT_EQ(y.get(0, c), d.dropout.factor(0, c) == 0 ? 0 : HUGE_VAL);
    }
  });
}

TEST(Dropout, probability_just_below_one_leaves_finite_numbers) {
  constexpr int64_t kRows = 3, kWidth = 1000;
  const DropoutCase d(kRows, 0.999999f);
  for_each_target([&] {
    Matrix x(kRows, kWidth), y(kRows, kWidth);
    x.fill([](int64_t, int64_t) { return 1; });
    kernels().dropout(x, d.dropout, y);
    int64_t kept = 0;
    for (int64_t r = 0; r < kRows; ++r) {
      for (int64_t c = 0; c < kWidth; ++c) {
        ASSERT_EQ(y.get(r, c), d.dropout.factor(r, c));
        ASSERT_LE(y.get(r, c), 65536);
        kept += y.get(r, c) != 0;
      }
    }
    EXPECT_LT(kept, 5);
  });
}

TEST(Activation, dropout_masks_value_and_gradient_alike) {
  constexpr int64_t kRows = 5, kWidth = 150;
  const DropoutCase d(kRows, 0.4f);
  for_each_target([&] {
    Matrix x(kRows, kWidth), y(kRows, kWidth), plain(kRows, kWidth);
    x.fill_normal(1);
    kernels().activation(Activation::gelu, x, {}, plain);
    kernels().activation(Activation::gelu, x, d.dropout, y);
    expect_near(
        y, [&](int64_t r, int64_t c) { return plain.get(r, c) * d.dropout.factor(r, c); }, 0x1p-23,
        0);
    kernels().activation_backward(Activation::gelu, x, x, {}, plain);
    kernels().activation_backward(Activation::gelu, x, x, d.dropout, y);
    expect_near(
        y, [&](int64_t r, int64_t c) { return plain.get(r, c) * d.dropout.factor(r, c); }, 0x1p-22,
        0);
  });
}

TEST(Activation, threads_and_other_rows_do_not_change_bits) {
  expect_same_bits_for_any_threads([] {
    const DropoutCase d(70, 0.1f);
    Matrix x(70, 515, DType::bf16), y(70, 515, DType::bf16);
    x.fill_normal(1);
    kernels().activation(Activation::gelu, x, d.dropout, y);
    Dropout third = d.dropout;
    third.sample += 33;
    third.position += 33;
    Matrix alone(1, 515, DType::bf16);
    kernels().activation(Activation::gelu, x.view().slice(33, 1), third, alone);
    for (int64_t c = 0; c < 515; ++c) EXPECT_EQ(alone.get(0, c), y.get(33, c));
    return y;
  });
}

TEST(Activation, gradient_may_overwrite_its_input) {
  for_each_target([] {
    Matrix x(3, 33), dy(3, 33), dx(3, 33);
    x.fill_normal(1);
    dy.fill_normal(2);
    kernels().activation_backward(Activation::silu, x, dy, {}, dx);
    kernels().activation_backward(Activation::silu, x, dy, {}, dy);
    EXPECT_TRUE(dx == dy);
  });
}

// Sums that are negative, zero of either sign, too small for a normal number, infinite and NaN.
TEST(Activation, of_a_product_has_the_bits_of_one_that_is_applied_afterwards) {
  const std::vector<double> special = {-0.0, 0.0,  1e-39,     -1e-39,       -1.0,
                                       2.0,  3e38, -INFINITY, std::nan(""), -std::nan("")};
  for (const auto& [in, out] :
       {std::pair(DType::f32, DType::f32), {DType::bf16, DType::bf16}, {DType::bf16, DType::f32}}) {
    for (const int64_t k : {40, 3000}) {
      Matrix a(37, k, in), b(70, k, in);
      a.fill([&](int64_t r, int64_t l) {
        return l == 0 && r < 10 ? special[static_cast<size_t>(r)] : 0;
      });
      b.fill([&](int64_t, int64_t) { return 1; });
      for (int64_t r = 10; r < 37; ++r) a.set(r, r - 10, r % 2 == 0 ? r : -r);
      for (const Activation kind : {Activation::relu, Activation::gelu}) {
        Matrix fused(37, 70, out), plain(37, 70, out), wanted(37, 70, out);
        kernels().gemm({.a = a, .b = b, .c = fused, .transpose_b = true, .activation = kind});
        kernels().gemm({.a = a, .b = b, .c = plain, .transpose_b = true});
        kernels().activation(kind, plain, {}, wanted);
        SCOPED_TRACE(fmt::format("{} inner, activation {}", k, static_cast<int>(kind)));
        for (int64_t r = 0; r < 37; ++r) {
          for (int64_t c = 0; c < 70; ++c) {  // which of two NaNs a product keeps is the compiler's
            const double got = fused.get(r, c), want = wanted.get(r, c);
            ASSERT_TRUE(std::isnan(want) ? std::isnan(got)
                                         : got == want && std::signbit(got) == std::signbit(want))
                << r << ", " << c << ": " << got << ", apart " << want;
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace heddle::kernel_test
