// Layer norm: golden numbers, float64, finite differences, the residual sum and its dropout.
#include "tests/kernels/kernel_case.h"

namespace heddle::kernel_test {
namespace {

constexpr double kEps = 1e-5;

struct Moments {
  double mean, rstd;
};
Moments moments(const std::vector<double>& h) {
  double mean = 0, var = 0;
  for (double v : h) mean += v / static_cast<double>(h.size());
  for (double v : h) var += (v - mean) * (v - mean) / static_cast<double>(h.size());
  return {mean, 1 / std::sqrt(var + kEps)};
}
std::vector<double> row_of(const Matrix& m, int64_t r) {
  std::vector<double> row;
  for (int64_t c = 0; c < m.width(); ++c) row.push_back(m.get(r, c));
  return row;
}

// Everything that a norm of [rows, width] reads and writes.
struct NormCase {
  Matrix x, sub, h, y, gamma, beta, mean, rstd;
  NormArgs args;
  NormCase(int64_t rows, int64_t width, DType dtype, int64_t padding = 0)
      : x(rows, width, dtype, padding),
        sub(rows, width, dtype, padding),
        h(rows, width, dtype, padding),
        y(rows, width, dtype, padding),
        gamma(1, width),
        beta(1, width),
        mean(1, rows),
        rstd(1, rows) {
    x.fill_normal(1);
    sub.fill_normal(2);
    gamma.fill([](int64_t, int64_t c) { return 1 + 0.1 * static_cast<double>(c % 5); });
    beta.fill_normal(3);
    args = {.x = x,
            .sub = {},
            .dropout = {},
            .h = {},
            .y = y,
            .gamma = gamma.view().row<float>(0),
            .beta = beta.view().row<float>(0),
            .eps = kEps,
            .mean = mean.view().row<float>(0),
            .rstd = rstd.view().row<float>(0)};
  }
  void expect_norm_of(const Matrix& input, DType dtype) const {
    std::vector<Moments> m;
    for (int64_t r = 0; r < input.rows(); ++r) {
      m.push_back(moments(row_of(input, r)));
      EXPECT_NEAR(mean.get(0, r), m[r].mean, 1e-6);
      EXPECT_NEAR(rstd.get(0, r), m[r].rstd, 2e-6 * m[r].rstd);
    }
    expect_near(
        y,
        [&](int64_t r, int64_t c) {
          return (input.get(r, c) - m[r].mean) * m[r].rstd * gamma.get(0, c) + beta.get(0, c);
        },
        input.width() == 1 ? 1e-3 : 4e-6 + (dtype == DType::f32 ? 0 : epsilon(dtype)));
  }
};

TEST(Norm, cancelling_numbers_give_the_golden_values) {
  for_each_target([] {
    NormCase n(1, 3, DType::f32);
    const double in[] = {0.001, 10000.103, -9999999.113};
    const double want[] = {0.706046, 0.708167, -1.414213};
    n.x.fill([&](int64_t, int64_t c) { return in[c]; });
    n.gamma.fill([](int64_t, int64_t) { return 1; });
    n.beta.fill([](int64_t, int64_t) { return 0; });
    kernels().norm(n.args);
    expect_near(
        n.y, [&](int64_t, int64_t c) { return want[c]; }, 1e-6);
  });
}

TEST(Norm, variance_of_a_large_constant_offset_does_not_cancel) {
  for_each_target([] {
    NormCase n(1, 64, DType::f32);
    n.x.fill([](int64_t, int64_t c) { return 1e4 + (c % 2 ? 0.5 : -0.5); });
    kernels().norm(n.args);
    EXPECT_NEAR(n.rstd.get(0, 0), 1 / std::sqrt(0.25 + kEps), 1e-4);
  });
}

TEST(Norm, every_width_dtype_and_stride_matches_float64) {
  for_each_case([](int64_t width, DType dtype) {
    NormCase n(3, width, dtype, 3);
    kernels().norm(n.args);
    n.expect_norm_of(n.x, dtype);
  });
}

TEST(Norm, residual_sum_is_kept_and_normalised_as_kept) {
  constexpr int64_t kRows = 3;
  const DropoutCase d(kRows, 0.3f);
  for_each_case([&](int64_t width, DType dtype) {
    NormCase n(kRows, width, dtype, 3);
    n.args.sub = n.sub;
    n.args.h = n.h;
    n.args.dropout = d.dropout;
    kernels().norm(n.args);
    expect_near(
        n.h,
        [&](int64_t r, int64_t c) {
          return n.x.get(r, c) + n.sub.get(r, c) * d.dropout.factor(r, c);
        },
        2 * epsilon(dtype));
    n.expect_norm_of(n.h, dtype);
  });
}

TEST(Norm, absent_x_and_absent_h_change_no_bit_of_y) {
  const DropoutCase d(5, 0.3f);
  for_each_target([&] {
    for (DType dtype : computed_dtypes()) {
      NormCase with_zeros(5, 50, dtype), without_x(5, 50, dtype), without_h(5, 50, dtype);
      for (NormCase* n : {&with_zeros, &without_x, &without_h}) {
        n->x.fill([](int64_t, int64_t) { return 0; });
        n->args.sub = n->sub;
        n->args.h = n->h;
        n->args.dropout = d.dropout;
      }
      without_x.args.x = {};
      without_h.args.h = {};
      kernels().norm(with_zeros.args);
      kernels().norm(without_x.args);
      kernels().norm(without_h.args);
      EXPECT_TRUE(with_zeros.y == without_x.y);
      EXPECT_TRUE(with_zeros.y == without_h.y);
    }
  });
}

TEST(Norm, h_may_overwrite_x_or_sub) {
  for_each_target([] {
    NormCase apart(5, 50, DType::bf16), over_x(5, 50, DType::bf16), over_sub(5, 50, DType::bf16);
    for (NormCase* n : {&apart, &over_x, &over_sub}) n->args.sub = n->sub;
    apart.args.h = apart.h;
    over_x.args.h = over_x.x;
    over_sub.args.h = over_sub.sub;
    for (NormCase* n : {&apart, &over_x, &over_sub}) kernels().norm(n->args);
    EXPECT_TRUE(apart.y == over_x.y && apart.h == over_x.x);
    EXPECT_TRUE(apart.y == over_sub.y && apart.h == over_sub.sub);
  });
}

// The backward pass of a NormCase whose h is x.
struct BackwardCase {
  NormCase n;
  Matrix dy, dh_in, dh, dsub, dgamma, dbeta;
  NormBackwardArgs args;
  BackwardCase(int64_t rows, int64_t width, DType dtype, int64_t padding = 0)
      : n(rows, width, dtype, padding),
        dy(rows, width, dtype, padding),
        dh_in(rows, width, dtype, padding),
        dh(rows, width, dtype, padding),
        dsub(rows, width, dtype, padding),
        dgamma(1, width),
        dbeta(1, width) {
    dy.fill_normal(4);
    dh_in.fill_normal(5);
    kernels().norm(n.args);
    args = {.h = n.x,
            .dy = dy,
            .dh_in = {},
            .dh = dh,
            .dsub = {},
            .dropout = {},
            .gamma = n.args.gamma,
            .mean = n.args.mean,
            .rstd = n.args.rstd,
            .dgamma = dgamma.view().row<float>(0),
            .dbeta = dbeta.view().row<float>(0)};
  }
  // sum_c dy norm(h)_c of row r, with h[moved] moved.
  double loss(int64_t r, int64_t moved, double by) const {
    std::vector<double> h = row_of(n.x, r);
    h[static_cast<size_t>(moved)] += by;
    const Moments m = moments(h);
    double sum = 0;
    for (int64_t c = 0; c < n.x.width(); ++c) {
      sum += dy.get(r, c) * (h[static_cast<size_t>(c)] - m.mean) * m.rstd * n.gamma.get(0, c);
    }
    return sum;
  }
};

TEST(NormBackward, gradient_of_h_matches_finite_differences) {
  for_each_case([](int64_t width, DType dtype) {
    if (width == 1) return;  // h - mean is 0 and rstd 316: nothing but rounding
    BackwardCase b(2, width, dtype, 3);
    b.args.dh_in = b.dh_in;
    kernels().norm_backward(b.args);
    expect_near(
        b.dh,
        [&](int64_t r, int64_t c) {
          return (b.loss(r, c, 1e-6) - b.loss(r, c, -1e-6)) / 2e-6 + b.dh_in.get(r, c);
        },
        // rstd up to about 100 where two or three numbers lie close
        width < 5 ? 5e-3 : 2e-5 + (dtype == DType::f32 ? 0 : 2 * epsilon(dtype)));
  });
}

TEST(NormBackward, gradients_of_gamma_and_beta_match_float64) {
  for_each_case([](int64_t width, DType dtype) {
    if (width == 1) return;
    for (int64_t rows : {1, 3, 300}) {
      BackwardCase b(rows, width, dtype, 3);
      kernels().norm_backward(b.args);
      std::vector<Moments> m;
      for (int64_t r = 0; r < rows; ++r) m.push_back(moments(row_of(b.n.x, r)));
      const auto sum = [&](int64_t c, bool times_n) {
        double s = 0;
        for (int64_t r = 0; r < rows; ++r) {
          s += b.dy.get(r, c) * (times_n ? (b.n.x.get(r, c) - m[r].mean) * m[r].rstd : 1);
        }
        return s;
      };
      expect_near(
          b.dgamma, [&](int64_t, int64_t c) { return sum(c, true); }, 1e-5, 10);
      expect_near(
          b.dbeta, [&](int64_t, int64_t c) { return sum(c, false); }, 1e-5, 10);
    }
  });
}

TEST(NormBackward, dsub_is_dh_through_the_mask_of_the_forward_pass) {
  const DropoutCase d(7, 0.3f);
  for_each_target([&] {
    for (DType dtype : computed_dtypes()) {
      BackwardCase b(7, 150, dtype);
      b.args.dsub = b.dsub;
      b.args.dropout = d.dropout;
      kernels().norm_backward(b.args);
      expect_near(
          b.dsub, [&](int64_t r, int64_t c) { return b.dh.get(r, c) * d.dropout.factor(r, c); },
          epsilon(dtype), 0);
    }
  });
}

TEST(NormBackward, dh_may_overwrite_dh_in) {
  for_each_target([] {
    BackwardCase apart(5, 50, DType::bf16), over(5, 50, DType::bf16);
    apart.args.dh_in = apart.dh_in;
    over.args.dh_in = over.dh_in;
    over.args.dh = over.dh_in;
    kernels().norm_backward(apart.args);
    kernels().norm_backward(over.args);
    EXPECT_TRUE(apart.dh == over.dh_in);
  });
}

TEST(Norm, threads_and_other_rows_do_not_change_bits) {
  expect_same_bits_for_any_threads([] {
    const DropoutCase d(600, 0.1f);
    NormCase n(600, 133, DType::bf16);
    n.args.sub = n.sub;
    n.args.h = n.h;
    n.args.dropout = d.dropout;
    kernels().norm(n.args);
    NormCase one(1, 133, DType::bf16);
    one.args.x = n.x.view().slice(77, 1);
    one.args.sub = n.sub.view().slice(77, 1);
    one.args.dropout = d.dropout;
    one.args.dropout.sample += 77;
    one.args.dropout.position += 77;
    kernels().norm(one.args);
    EXPECT_EQ(row_of(one.y, 0), row_of(n.y, 77));
    return std::vector<Matrix>{n.y, n.h, n.mean, n.rstd};
  });
}

TEST(NormBackward, threads_do_not_change_bits) {
  expect_same_bits_for_any_threads([] {
    BackwardCase b(1000, 133, DType::f32);
    b.args.dh_in = b.dh_in;
    kernels().norm_backward(b.args);
    return std::vector<Matrix>{b.dh, b.dgamma, b.dbeta};
  });
}

}  // namespace
}  // namespace heddle::kernel_test
