// Matrix products in int8 against their definition in integers. gemm_test.cc runs these again in
// children that see fewer instructions.
#include "tests/kernels/kernel_case.h"

namespace heddle::kernel_test {
namespace {

/// A row as int8: the definition.
struct Rounded {
  std::vector<int32_t> values;
  float scale = 0;

  Rounded(const Matrix& x, int64_t r) {
    float largest = 0;
    for (int64_t c = 0; c < x.width(); ++c) {
      largest = std::max(largest, std::fabs(static_cast<float>(x.get(r, c))));
    }
    const float factor = largest > 0 ? 127.0f / largest : 0;
    for (int64_t c = 0; c < x.width(); ++c) {
      values.push_back(
          static_cast<int32_t>(std::nearbyint(static_cast<float>(x.get(r, c)) * factor)));
    }
    scale = largest / 127;
  }
};

struct Problem {
  int64_t m, n, k;
  DType a_type, b_type, c_type;
  int64_t padding = 0;
  bool bias = true;
};

class Int8Product {
 public:
  explicit Int8Product(const Problem& p)
      : p_(p), a(p.m, p.k, p.a_type, p.padding), b(p.n, p.k, p.b_type, p.padding), bias_(p.n) {
    a.fill_normal(1);
    b.fill_normal(2);
    for (int64_t c = 0; c < p.n; ++c) bias_[c] = 0.25f * static_cast<float>(c % 7) - 0.5f;
  }
  Int8Product(const Int8Product&) = delete;
  Int8Product& operator=(const Int8Product&) = delete;
  ~Int8Product() { forget_packed(constant_); }

  Matrix rows(int64_t begin, int64_t count) {
    Matrix c(count, p_.n, p_.c_type, p_.padding);
    kernels().gemm({.a = a.view().slice(begin, count),
                    .b = b,
                    .c = c,
                    .bias = p_.bias ? bias_.data() : nullptr,
                    .transpose_b = true,
                    .constant_b = constant_,
                    .int8 = true});
    return c;
  }
  void expect_equals_definition() {
    SCOPED_TRACE(fmt::format("{}x{}x{} {} {} {}", p_.m, p_.n, p_.k, dtype_name(p_.a_type),
                             dtype_name(p_.b_type), dtype_name(p_.c_type)));
    std::vector<Rounded> left, right;
    for (int64_t i = 0; i < p_.m; ++i) left.emplace_back(a, i);
    for (int64_t j = 0; j < p_.n; ++j) right.emplace_back(b, j);
    expect_near(
        rows(0, p_.m),
        [&](int64_t i, int64_t j) {
          int64_t sum = 0;  // exact
          for (int64_t l = 0; l < p_.k; ++l) sum += left[i].values[l] * right[j].values[l];
          return static_cast<double>(sum) * left[i].scale * right[j].scale +
                 (p_.bias ? bias_[j] : 0);
        },
        p_.c_type == DType::bf16 ? 0x1p-8 : 1e-6);
  }

 private:
  Problem p_;

 public:
  Matrix a, b;

 private:
  std::vector<float> bias_;
  uint64_t constant_ = new_constant();
};

TEST(GemmInt8, products_equal_the_definition) {
  for (const DType a : computed_dtypes()) {
    for (const DType b : computed_dtypes()) {
      for (const auto& [m, n, k] : {std::array<int64_t, 3>{1, 1, 1},
                                    {1, 40, 64},
                                    {2, 31, 63},
                                    {7, 33, 65},
                                    {16, 64, 128},
                                    {17, 5, 200},
                                    {33, 100, 512},
                                    {300, 70, 130},
                                    {300, 70, 1100},
                                    {49, 40, 2100}}) {
        Int8Product({m, n, k, a, b, a}).expect_equals_definition();
        Int8Product({m, n, k, a, b, DType::f32, 3, false}).expect_equals_definition();
      }
    }
  }
}

TEST(GemmInt8, a_row_has_the_same_bits_whatever_the_batch_and_the_threads) {
  const int before = num_threads();
  for (const DType type : computed_dtypes()) {
    for (const int64_t k : {100, 512, 2100}) {
      Int8Product product({400, 300, k, type, DType::f32, type});
      set_num_threads(1);
      const Matrix whole = product.rows(0, 400);
      for (const int threads : {1, 3}) {
        set_num_threads(threads);
        for (const int64_t m : {1, 2, 7, 16, 33, 100, 300}) {
          const Matrix part = product.rows(11 * m % 97, m);
          for (int64_t r = 0; r < m; ++r) {
            for (int64_t c = 0; c < 300; ++c) {
              ASSERT_EQ(part.get(r, c), whole.get(11 * m % 97 + r, c)) << m << " rows, row " << r;
            }
          }
        }
      }
    }
  }
  set_num_threads(before);
}

TEST(GemmInt8, a_row_of_zeros_gives_the_bias_and_nan_gives_nan) {
  Int8Product product({3, 40, 70, DType::f32, DType::f32, DType::f32});
  for (int64_t c = 0; c < 70; ++c) product.a.set(1, c, 0);
  product.a.set(2, 69, std::nan(""));
  const Matrix c = product.rows(0, 3);
  for (int64_t j = 0; j < 40; ++j) {
    EXPECT_TRUE(std::isfinite(c.get(0, j)));
    EXPECT_EQ(c.get(1, j), 0.25 * static_cast<double>(j % 7) - 0.5);
    EXPECT_TRUE(std::isnan(c.get(2, j)));
  }
  product.a.set(2, 69, INFINITY);
  EXPECT_FALSE(std::isfinite(product.rows(2, 1).get(0, 0)));
}

TEST(GemmInt8, the_largest_sums_do_not_overflow) {
  const int64_t k = 1 << 16;
  Int8Product product({2, 3, k, DType::f32, DType::f32, DType::f32, 0, false});
  product.a.fill([](int64_t r, int64_t) { return r == 0 ? 1.0 : -1.0; });
  product.b.fill([](int64_t, int64_t) { return 1.0; });
  const Matrix c = product.rows(0, 2);
  for (int64_t j = 0; j < 3; ++j) {
    EXPECT_NEAR(c.get(0, j), static_cast<double>(k), 1);
    EXPECT_NEAR(c.get(1, j), -static_cast<double>(k), 1);
  }
}

TEST(GemmInt8, what_int8_cannot_do_is_refused) {
  Matrix a(2, 4), b(3, 4), c(2, 3), plain(4, 3);
  EXPECT_THROW(kernels().gemm({.a = a, .b = b, .c = c, .transpose_b = true, .int8 = true}), Error);
  const uint64_t constant = new_constant();
  EXPECT_THROW(kernels().gemm({.a = a, .b = plain, .c = c, .constant_b = constant, .int8 = true}),
               Error);
}

}  // namespace
}  // namespace heddle::kernel_test
