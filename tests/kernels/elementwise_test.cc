// Elementwise kernels against float64.
#include <limits>

#include "tests/kernels/kernel_case.h"

namespace heddle::kernel_test {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

TEST(Philox, published_vectors_are_met) {  // Random123, kat_vectors: philox4x32 10
  EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}),
            (PhiloxCounter{0x6627e8d5u, 0xe169c58du, 0xbc57ac4cu, 0x9b00dbd8u}));
  constexpr uint32_t kOnes = 0xffffffffu;
  EXPECT_EQ(philox({kOnes, kOnes, kOnes, kOnes}, {kOnes, kOnes}),
            (PhiloxCounter{0x408f276du, 0x41c83b0eu, 0xa20bc7c6u, 0x6d5451fdu}));
}

TEST(Convert, f32_to_bf16_rounds_to_nearest_even) {
  struct Case {
    uint32_t f32;
    uint16_t bf16;
  };
  const std::array<Case, 9> cases = {{{0x3f808000u, 0x3f80u},    // a tie goes to the even one
                                      {0x3f818000u, 0x3f82u},    // and so does this, upwards
                                      {0x3f808001u, 0x3f81u},    // above the tie
                                      {0x3f807fffu, 0x3f80u},    // below the tie
                                      {0xbf818000u, 0xbf82u},    // negative
                                      {0x7f7fffffu, 0x7f80u},    // beyond the largest: infinity
                                      {0xff800000u, 0xff80u},    // -infinity
                                      {0x00000001u, 0x0000u},    // the smallest denormal
                                      {0x00018000u, 0x0002u}}};  // denormals are kept
  for_each_target([&] {
    for (size_t i = 0; i < cases.size(); ++i) {
      std::vector<float> x(21);
      std::vector<bf16> y(21);
      for (auto& v : x) v = std::bit_cast<float>(cases[i].f32);
      kernels().convert({x.data(), 1, 21, 21, DType::f32}, {y.data(), 1, 21, 21, DType::bf16});
      for (bf16 v : y) EXPECT_EQ(v.bits, cases[i].bf16) << "case " << i;
    }
  });
}

TEST(Convert, nan_whose_upper_half_is_empty_stays_nan) {
  const auto nan = std::bit_cast<float>(0x7f800001u);
  for_each_target([&] {
    std::vector<float> x(19, nan);
    std::vector<bf16> y(19);
    kernels().convert({x.data(), 1, 19, 19, DType::f32}, {y.data(), 1, 19, 19, DType::bf16});
    for (bf16 v : y) EXPECT_TRUE(std::isnan(static_cast<float>(v)));
  });
}

TEST(Convert, bf16_to_f32_and_back_is_exact_for_every_value) {
  for_each_target([&] {
    std::vector<bf16> x(65536), back(65536);
    std::vector<float> y(65536);
    for (uint32_t i = 0; i < 65536; ++i) x[i].bits = static_cast<uint16_t>(i);
    const Rows rx{x.data(), 1, 65536, 65536, DType::bf16};
    const Rows ry{y.data(), 1, 65536, 65536, DType::f32};
    kernels().convert(rx, ry);
    kernels().convert(ry, {back.data(), 1, 65536, 65536, DType::bf16});
    for (uint32_t i = 0; i < 65536; ++i) {
      if (std::isnan(static_cast<float>(x[i]))) {
        EXPECT_TRUE(std::isnan(static_cast<float>(back[i])));
      } else {
        ASSERT_EQ(std::bit_cast<uint32_t>(y[i]), i << 16);
        ASSERT_EQ(back[i].bits, x[i].bits);
      }
    }
  });
}

TEST(Convert, a_dtype_that_is_not_computed_in_is_a_device_error) {
  std::vector<uint16_t> x(4);
  Matrix y(1, 4);
  try {
    kernels().convert({x.data(), 1, 4, 4, DType::f16}, y);
    FAIL() << "no error";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::device);
    EXPECT_NE(std::string(e.what()).find("f16"), std::string::npos) << e.what();
  }
}

TEST(Elementwise, every_width_dtype_and_stride_matches_float64) {
  for_each_case([](int64_t width, DType dtype) {
    for (int64_t padding : {0, 3}) {
      Matrix a(3, width, dtype, padding), b(3, width, dtype, padding), y(3, width, dtype, padding);
      Matrix bias(1, width);
      a.fill_normal(1);
      b.fill_normal(2);
      bias.fill_normal(3);
      const double eps = 2 * epsilon(dtype);
      kernels().add(a, b, y);
      expect_near(
          y, [&](int64_t r, int64_t c) { return a.get(r, c) + b.get(r, c); }, eps, 0);
      kernels().mul(a, b, y);
      expect_near(
          y, [&](int64_t r, int64_t c) { return a.get(r, c) * b.get(r, c); }, eps, 0);
      kernels().add_row(a, bias.view().row<float>(0), y);
      expect_near(
          y, [&](int64_t r, int64_t c) { return a.get(r, c) + bias.get(0, c); }, eps, 0);
      const Matrix before = y;
      kernels().axpby(2.5f, a, -0.5f, y);
      expect_near(
          y, [&](int64_t r, int64_t c) { return 2.5 * a.get(r, c) - 0.5 * before.get(r, c); }, eps);
    }
  });
}

TEST(Elementwise, operands_of_different_dtypes_are_summed_in_f32) {
  for_each_target([] {
    Matrix a(5, 37, DType::f32, 2), b(5, 37, DType::bf16), y(5, 37, DType::f32);
    a.fill_normal(1);
    b.fill_normal(2);
    kernels().add(a, b, y);
    expect_near(
        y, [&](int64_t r, int64_t c) { return static_cast<float>(a.get(r, c) + b.get(r, c)); }, 0);
  });
}

TEST(Elementwise, the_output_may_be_an_input) {
  for_each_target([] {
    Matrix a(70, 512), b(70, 512), y(70, 512);
    a.fill_normal(1);
    b.fill_normal(2);
    kernels().add(a, b, y);
    kernels().add(a, b, a);
    EXPECT_TRUE(a == y);
  });
}

TEST(Axpby, beta_zero_does_not_read_y) {
  for_each_target([] {
    Matrix x(2, 19), y(2, 19);
    x.fill_normal(1);
    y.fill([](int64_t, int64_t) { return kNan; });
    kernels().axpby(3, x, 0, y);
    expect_near(
        y, [&](int64_t r, int64_t c) { return 3 * x.get(r, c); }, 0x1p-24, 0);
  });
}

TEST(Elementwise, threads_and_place_in_the_row_do_not_change_bits) {
  expect_same_bits_for_any_threads([] {
    Matrix x(70, 517), y(70, 517);
    x.fill_normal(1);
    kernels().mul(x, x, y);
    Matrix one(1, 1);  // a tail of one lane gives what the full vector gives
    const Rows of_row = x.view().slice(3, 1).columns(5, 1);
    kernels().mul(of_row, of_row, one);
    EXPECT_EQ(one.get(0, 0), y.get(3, 5));
    return y;
  });
}

TEST(Elementwise, no_rows_are_no_work) {
  Matrix x(3, 8), y(3, 8);
  x.fill([](int64_t, int64_t) { return 2; });
  y.fill([](int64_t r, int64_t c) { return static_cast<double>(8 * r + c); });
  const Rows none = x.view().slice(1, 0), none_of_y = y.view().slice(1, 0);
  kernels().add(none, none, none_of_y);
  kernels().mul(none, none, none_of_y);
  for (int64_t r = 0; r < 3; ++r) {
    for (int64_t c = 0; c < 8; ++c) EXPECT_EQ(y.get(r, c), static_cast<double>(8 * r + c));
  }
}

}  // namespace
}  // namespace heddle::kernel_test
