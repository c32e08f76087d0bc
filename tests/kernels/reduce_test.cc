// Sums and softmax against float64; the order of sums.
#include <limits>

#include "tests/kernels/kernel_case.h"

namespace heddle::kernel_test {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

double row_sum(const Matrix& x, int64_t r, const std::function<double(double)>& f) {
  double sum = 0;
  for (int64_t c = 0; c < x.width(); ++c) sum += f(x.get(r, c));
  return sum;
}

TEST(SumColumns, every_width_and_dtype_matches_float64) {
  for_each_case([](int64_t width, DType dtype) {
    for (int64_t rows : {0, 1, 3, 128, 700}) {
      Matrix x(rows, width, dtype, 3), y(1, width);
      x.fill_normal(1);
      kernels().sum_columns(x, y.view().row<float>(0));
      expect_near(
          y,
          [&](int64_t, int64_t c) {
            double sum = 0;
            for (int64_t r = 0; r < rows; ++r) sum += x.get(r, c);
            return sum;
          },
          2e-6, 10);
    }
  });
}

TEST(SumColumns, chunks_of_128_rows_are_summed_in_order) {
  for_each_target([] {
    // 2^24 + 1 + 1 + ... stays 2^24 in f32, if summed in order; a second chunk sums its ones first.
    Matrix x(256, 37), y(1, 37);
    x.fill([](int64_t r, int64_t) { return r == 0 ? 0x1p24 : 1; });
    kernels().sum_columns(x, y.view().row<float>(0));
    expect_near(
        y, [](int64_t, int64_t) { return 0x1p24 + 128; }, 0);
  });
}

TEST(SumColumns, threads_do_not_change_bits) {
  expect_same_bits_for_any_threads([] {
    Matrix x(1500, 133), y(1, 133);
    x.fill_normal(1);
    kernels().sum_columns(x, y.view().row<float>(0));
    return y;
  });
}

TEST(SumRows, every_width_and_dtype_matches_float64) {
  for_each_case([](int64_t width, DType dtype) {
    Matrix x(5, width, dtype, 3), y(1, 5);
    x.fill_normal(1);
    kernels().sum_rows(x, y.view().row<float>(0));
    expect_near(
        y, [&](int64_t, int64_t r) { return row_sum(x, r, [](double v) { return v; }); }, 2e-6, 10);
  });
}

TEST(SumSquares, every_length_matches_float64) {
  for_each_target([] {
    for (int64_t n : {0, 1, 5, 37, 16'384, 16'385, 100'003}) {
      Matrix x(1, n);
      x.fill_normal(1);
      const double want = row_sum(x, 0, [](double v) { return v * v; });
      EXPECT_NEAR(kernels().sum_squares(x.view().row<float>(0), n), want, 1e-6 * want) << n;
    }
  });
}

TEST(SumSquares, threads_do_not_change_bits) {
  expect_same_bits_for_any_threads([] {
    Matrix x(1, 100'003);
    x.fill_normal(1);
    return kernels().sum_squares(x.view().row<float>(0), 100'003);
  });
}

TEST(AllFinite, one_bad_element_anywhere_is_found) {
  for_each_target([] {
    for (DType dtype : computed_dtypes()) {
      for (int64_t padding : {0, 5}) {
        Matrix x(70, 130, dtype, padding);
        x.fill([](int64_t, int64_t) { return 3e38; });  // large, but finite
        EXPECT_TRUE(kernels().all_finite(x));
        for (double bad : {kInfinity, -kInfinity, std::nan("")}) {
          for (int64_t at : {0, 64, 127, 128, 129}) {
            x.set(69 - at / 2, at, bad);
            EXPECT_FALSE(kernels().all_finite(x)) << bad << " at column " << at;
            x.set(69 - at / 2, at, 0);
          }
        }
      }
    }
  });
}

TEST(Softmax, every_width_dtype_and_stride_matches_float64) {
  for_each_case([](int64_t width, DType dtype) {
    Matrix x(3, width, dtype, 3), y(3, width, dtype, 1), log_y(3, width);
    x.fill_normal(1, 5);
    kernels().softmax(x, y);
    kernels().log_softmax(x, log_y);
    std::vector<double> total;
    for (int64_t r = 0; r < 3; ++r) {
      total.push_back(row_sum(x, r, [](double v) { return std::exp(v); }));
    }
    const auto p = [&](int64_t r, int64_t c) { return std::exp(x.get(r, c)) / total[r]; };
    expect_near(y, p, 2e-6 + (dtype == DType::f32 ? 0 : epsilon(dtype)), 0);
    expect_near(
        log_y, [&](int64_t r, int64_t c) { return std::log(p(r, c)); }, 1e-6);
  });
}

// What a scan of logits gives.
struct Scan {
  std::vector<float> maxima, sums;
  int64_t blocks, sum_blocks;

  // In two parts, the second from column `cut` on.
  Scan(Matrix& x, bool wants_sums, int64_t cut = 0)
      : blocks((x.width() + LogitScanArgs::kBlock - 1) / LogitScanArgs::kBlock),
        sum_blocks((x.width() + LogitScanArgs::kSumBlock - 1) / LogitScanArgs::kSumBlock) {
    maxima.resize(static_cast<size_t>(x.rows() * blocks));
    sums.resize(static_cast<size_t>(x.rows() * sum_blocks), 1);
    for (const auto& [first, end] : {std::pair<int64_t, int64_t>{0, cut}, {cut, x.width()}}) {
      if (first == end) continue;
      kernels().scan_logits({.logits = x.view().columns(first, end - first),
                             .maxima = maxima.data() + first / LogitScanArgs::kBlock,
                             .sums = sums.data() + first / LogitScanArgs::kSumBlock,
                             .wants_sums = wants_sums,
                             .maxima_stride = blocks,
                             .sums_stride = sum_blocks});
    }
  }
};

void expect_scan_matches_float64(int64_t width, DType dtype) {
  constexpr int64_t kBlock = LogitScanArgs::kBlock, kSumBlock = LogitScanArgs::kSumBlock;
  Matrix x(3, width, dtype, 3);
  x.fill_normal(1, 5);
  const Scan scan(x, true);
  for (int64_t r = 0; r < 3; ++r) {
    for (int64_t s = 0; s < scan.sum_blocks; ++s) {
      double most = -kInfinity, sum = 0;
      const int64_t end = std::min(width, (s + 1) * kSumBlock);
      for (int64_t b = s * kSumBlock / kBlock; b * kBlock < end; ++b) {
        double want = -kInfinity;
        for (int64_t c = b * kBlock; c < std::min(end, (b + 1) * kBlock); ++c) {
          want = std::max(want, x.get(r, c));
        }
        ASSERT_EQ(scan.maxima[r * scan.blocks + b], want) << "row " << r << ", block " << b;
        most = std::max(most, want);
      }
      for (int64_t c = s * kSumBlock; c < end; ++c) sum += std::exp(x.get(r, c) - most);
      ASSERT_NEAR(scan.sums[r * scan.sum_blocks + s], sum, 1e-6 * sum);
    }
  }
}

TEST(ScanLogits, maxima_and_sums_match_float64) {
  for_each_case(expect_scan_matches_float64);
  for (const int64_t width : {2047, 2048, 2049, 5000}) {
    expect_scan_matches_float64(width, DType::f32);
  }
}

TEST(ScanLogits, parts_give_the_bits_of_the_whole) {
  for_each_target([] {
    Matrix x(3, 5000);
    x.fill_normal(1, 5);
    const Scan whole(x, true), parts(x, true, 4096);
    EXPECT_EQ(parts.maxima, whole.maxima);
    EXPECT_EQ(parts.sums, whole.sums);
  });
}

TEST(ScanLogits, without_sums_nan_is_still_seen) {
  for_each_case([](int64_t width, DType dtype) {
    Matrix x(4, width, dtype, 3);
    x.fill_normal(1, 5);
    x.set(1, width / 2, std::nan(""));
    x.set(2, width - 1, -kInfinity);
    const Scan with(x, true), without(x, false);
    ASSERT_EQ(with.sum_blocks, 1);
    for (const int64_t r : {0, 2, 3}) EXPECT_EQ(without.sums[r], 0);
    EXPECT_TRUE(std::isnan(without.sums[1]) && std::isnan(with.sums[1]));
    for (int64_t i = 0; i < 4 * with.blocks; ++i) {
      if (i / with.blocks != 1) {
        ASSERT_EQ(without.maxima[i], with.maxima[i]);
      }
    }
  });
}

TEST(Softmax, row_of_minus_infinity_gives_zeros) {
  for_each_target([] {
    for (int64_t width : {1, 7, 16, 37}) {
      Matrix x(2, width), y(2, width);
      x.fill([](int64_t r, int64_t) { return r == 0 ? -kInfinity : 2; });
      kernels().softmax(x, y);
      for (int64_t c = 0; c < width; ++c) {
        EXPECT_EQ(y.get(0, c), 0);
        EXPECT_NEAR(y.get(1, c), 1.0 / static_cast<double>(width), 1e-7);
      }
    }
  });
}

TEST(Softmax, probabilities_are_zero_rather_than_denormal) {
  for_each_target([] {
    Matrix x(1, 40), y(1, 40);
    x.fill([](int64_t, int64_t c) { return c == 0 ? 0 : -87.0 - 0.1 * static_cast<double>(c); });
    kernels().softmax(x, y);
    for (int64_t c = 1; c < 40; ++c) {
      const double p = y.get(0, c);
      EXPECT_TRUE(p == 0 || p >= std::numeric_limits<float>::min()) << p;
      EXPECT_NEAR(p, std::exp(x.get(0, c)), 0x1p-126);
    }
  });
}

TEST(Softmax, large_logits_do_not_overflow) {
  for_each_target([] {
    Matrix x(1, 3), y(1, 3);
    x.fill([](int64_t, int64_t c) { return c == 1 ? 3e38 : c == 0 ? -3e38 : 3e38; });
    kernels().softmax(x, y);
    EXPECT_EQ(y.get(0, 0), 0);
    EXPECT_EQ(y.get(0, 1), 0.5);
    EXPECT_EQ(y.get(0, 2), 0.5);
  });
}

TEST(Softmax, gradient_matches_finite_differences) {
  for_each_case([](int64_t width, DType dtype) {
    Matrix x(2, width), y(2, width, dtype), dy(2, width, dtype, 3), dx(2, width, dtype, 1);
    x.fill_normal(1);
    dy.fill_normal(2);
    kernels().softmax(x, y);
    kernels().softmax_backward(y, dy, dx);
    // d/dx_c of sum_j dy_j softmax(x)_j, both sides of x_c
    const auto loss = [&](int64_t r, int64_t moved, double by) {
      double sum = 0, weighted = 0;
      for (int64_t c = 0; c < width; ++c) {
        const double e = std::exp(x.get(r, c) + (c == moved ? by : 0));
        sum += e;
        weighted += e * dy.get(r, c);
      }
      return weighted / sum;
    };
    expect_near(
        dx, [&](int64_t r, int64_t c) { return (loss(r, c, 1e-5) - loss(r, c, -1e-5)) / 2e-5; },
        dtype == DType::f32 ? 1e-6 : 3 * epsilon(dtype), dtype == DType::f32 ? 1 : 0.5);
  });
}

TEST(Softmax, in_place_and_any_threads_give_the_same_bits) {
  expect_same_bits_for_any_threads([] {
    Matrix x(70, 515), y(70, 515);
    x.fill_normal(1);
    kernels().softmax(x, y);
    kernels().softmax(x, x);
    EXPECT_TRUE(x == y);
    return y;
  });
}

}  // namespace
}  // namespace heddle::kernel_test
