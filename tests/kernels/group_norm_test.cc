// Group norm against its definition: groups narrower and wider than a vector, than a task.
#include "tests/kernels/kernel_case.h"

namespace heddle::kernel_test {
namespace {

struct GroupNormCase {
  int64_t groups;
  std::vector<int64_t> offsets = {0, 1, 1, 131, 200};  // a block of rows and parts of it; no row
  Matrix x, y, dy, dx, gamma, beta, mean, rstd, dgamma, dbeta;

  GroupNormCase(int64_t width, int64_t of_groups, DType dtype)
      : groups(of_groups),
        x(200, width, dtype, 1),
        y(200, width, dtype, 2),
        dy(200, width, dtype),
        dx(200, width, dtype, 1),
        gamma(1, width),
        beta(1, width),
        mean(1, 4 * of_groups),
        rstd(1, 4 * of_groups),
        dgamma(1, width),
        dbeta(1, width) {
    x.fill_normal(1), dy.fill_normal(2), beta.fill_normal(3);
    gamma.fill([](int64_t, int64_t c) { return 1 + 0.1 * static_cast<double>(c % 5); });
  }
  static float* floats(Matrix& m) { return m.view().row<float>(0); }
  GroupNormArgs forward() {
    return {.x = x,
            .y = y,
            .offsets = offsets.data(),
            .segments = 4,
            .groups = groups,
            .gamma = floats(gamma),
            .beta = floats(beta),
            .mean = floats(mean),
            .rstd = floats(rstd)};
  }
  GroupNormBackwardArgs backward() {
    return {
        .forward = forward(), .dy = dy, .dx = dx, .dgamma = floats(dgamma), .dbeta = floats(dbeta)};
  }
};

void expect_equal(const Matrix& got, const Matrix& want, double tolerance, double scale = 1) {
  expect_near(
      got, [&](int64_t r, int64_t c) { return want.get(r, c); }, tolerance, scale);
}

// {columns, groups}: narrow groups in one task, in three of which the last is one group, groups of
// a vector and a tail, one group of all.
const std::vector<std::pair<int64_t, int64_t>> kSizes = {
    {16, 8}, {144, 9}, {150, 5}, {100, 1}, {6, 6}};

TEST(GroupNorm, every_width_of_groups_and_dtype_matches_its_definition) {
  for_each_target([] {
    for (const DType dtype : computed_dtypes()) {
      for (const auto& [width, groups] : kSizes) {
        SCOPED_TRACE(fmt::format("{}, {} columns in {} groups", dtype_name(dtype), width, groups));
        // Sums of 130 rows in f32, in double from block to block; what is stored is rounded once.
        const double tolerance = 4 * epsilon(dtype), of_sums = 32 * 0x1p-24;
        GroupNormCase got(width, groups, dtype), want = got;
        kernels().group_norm(got.forward());
        definition::group_norm(want.forward());
        // The segment of one row in groups of one column has no variance, the empty one nothing.
        for (int64_t i = 0; i < 4 * groups; ++i) {
          if (i / groups == 1) continue;
          EXPECT_NEAR(got.mean.get(0, i), want.mean.get(0, i), of_sums);
          EXPECT_NEAR(got.rstd.get(0, i) / want.rstd.get(0, i), 1, of_sums);
        }
        expect_equal(got.y, want.y, tolerance + of_sums);
        want.mean = got.mean, want.rstd = got.rstd;  // numbers where the definition has none
        kernels().group_norm_backward(got.backward());
        definition::group_norm_backward(want.backward());
        // Relative to what is summed: 200 products of size one, times 1 / deviation.
        const double largest = groups == width ? 1 / std::sqrt(1e-5) : 4;
        expect_equal(got.dx, want.dx, tolerance + of_sums, largest);
        expect_equal(got.dgamma, want.dgamma, of_sums, 30);
        expect_equal(got.dbeta, want.dbeta, of_sums, 30);
      }
    }
  });
}

TEST(GroupNorm, bits_do_not_depend_on_threads) {
  expect_same_bits_for_any_threads([] {
    GroupNormCase c(144, 9, DType::bf16);
    kernels().group_norm(c.forward());
    kernels().group_norm_backward(c.backward());
    return std::vector<Matrix>{c.y, c.dx, c.mean, c.rstd, c.dgamma, c.dbeta};
  });
}

TEST(GroupNorm, a_segment_has_the_same_bits_alone) {
  GroupNormCase all(16, 8, DType::f32), alone = all;
  kernels().group_norm(all.forward());
  GroupNormArgs of_third = alone.forward();
  of_third.offsets += 2, of_third.segments = 1;
  kernels().group_norm(of_third);
  for (int64_t r = 1; r < 131; ++r) {
    for (int64_t c = 0; c < 16; ++c) ASSERT_EQ(all.y.get(r, c), alone.y.get(r, c));
  }
}

}  // namespace
}  // namespace heddle::kernel_test
