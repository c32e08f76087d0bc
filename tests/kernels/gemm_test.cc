// Matrix products against their definition in double, and the promise of equal bits.
// gemm_units_test.cc runs them again with fewer instructions.
#include <cstdlib>

#include "tests/kernels/kernel_case.h"

namespace heddle::kernel_test {
namespace {

struct DTypes {
  DType in, out;
};
const std::vector<DTypes>& dtype_pairs() {
  static const std::vector<DTypes> pairs = {
      {DType::f32, DType::f32}, {DType::bf16, DType::bf16}, {DType::bf16, DType::f32}};
  return pairs;
}

/// A product of random matrices; identities of constants are never used twice.
struct Problem {
  int64_t m, n, k;
  DTypes types;
  bool transpose_a = false, transpose_b = false, bias = false, accumulate = false, packed = false;
  int64_t padding = 0;  ///< elements between the rows

  std::string name() const {
    return fmt::format("{}x{}x{} {}->{}{}{}{}{}{} padding {}", m, n, k, dtype_name(types.in),
                       dtype_name(types.out), transpose_a ? " aT" : "", transpose_b ? " bT" : "",
                       bias ? " bias" : "", accumulate ? " accumulate" : "",
                       packed ? " packed" : "", padding);
  }
};

struct Operands {
  Problem p;
  Matrix a, b;
  std::vector<float> bias;
  uint64_t constant;

  explicit Operands(const Problem& problem)
      : p(problem),
        a(p.transpose_a ? p.k : p.m, p.transpose_a ? p.m : p.k, p.types.in, p.padding),
        b(p.transpose_b ? p.n : p.k, p.transpose_b ? p.k : p.n, p.types.in, p.padding),
        bias(p.n),
        constant(p.packed ? new_constant() : 0) {
    a.fill_normal(1);
    b.fill_normal(2);
    for (int64_t c = 0; c < p.n; ++c) bias[c] = 0.25f * static_cast<float>(c % 7) - 0.5f;
  }
  Operands(const Operands&) = delete;
  Operands& operator=(const Operands&) = delete;
  ~Operands() {
    if (constant != 0) forget_packed(constant);
  }

  double a_at(int64_t i, int64_t l) const { return p.transpose_a ? a.get(l, i) : a.get(i, l); }
  double b_at(int64_t l, int64_t j) const { return p.transpose_b ? b.get(j, l) : b.get(l, j); }

  /// Rows [begin, begin + count) of the product, added to `start` if it accumulates.
  Matrix rows(int64_t begin, int64_t count, double start = 0) {
    Matrix c(count, p.n, p.types.out, p.padding);
    c.fill([&](int64_t, int64_t) { return start; });
    const Rows all = a.view();
    kernels().gemm({.a = p.transpose_a ? all.columns(begin, count) : all.slice(begin, count),
                    .b = b,
                    .c = c,
                    .bias = p.bias ? bias.data() : nullptr,
                    .transpose_a = p.transpose_a,
                    .transpose_b = p.transpose_b,
                    .accumulate = p.accumulate,
                    .constant_b = constant});
    return c;
  }
};

/// Compares a product with its definition. A sum of k products of normal numbers is about sqrt(k);
/// rounding grows with k at worst, and the result is rounded once to its own dtype.
void expect_equals_definition(const Problem& p) {
  SCOPED_TRACE(p.name());
  Operands o(p);
  const double start = p.accumulate ? 1.5 : 7;  // 7 must be overwritten
  const Matrix c = o.rows(0, p.m, start);
  const double tolerance = (p.types.out == DType::bf16 ? 0x1p-8 : 0) +
                           0x1p-24 * (4 + std::sqrt(static_cast<double>(p.k)));
  expect_near(
      c,
      [&](int64_t i, int64_t j) {
        double sum = (p.accumulate ? start : 0) + (p.bias ? o.bias[j] : 0);
        for (int64_t l = 0; l < p.k; ++l) sum += o.a_at(i, l) * o.b_at(l, j);
        return sum;
      },
      tolerance, 1 + std::sqrt(static_cast<double>(p.k)));
}

std::vector<int64_t> ragged_rows() {
  std::vector<int64_t> rows;
  for (int64_t m = 1; m <= 40; ++m) rows.push_back(m);
  for (int64_t m : {63, 64, 65, 255, 256, 257, 300, 600}) rows.push_back(m);
  return rows;
}

TEST(Gemm, any_number_of_rows_equals_the_definition) {
  for (const DTypes types : dtype_pairs()) {
    for (int64_t m : ragged_rows()) {
      for (bool packed : {false, true}) {
        expect_equals_definition({.m = m,
                                  .n = 24,
                                  .k = 40,
                                  .types = types,
                                  .transpose_b = m % 2 == 0,
                                  .bias = m % 3 == 0,
                                  .packed = packed,
                                  .padding = m % 5 == 0 ? 3 : 0});
      }
    }
  }
}

TEST(Gemm, any_inner_size_equals_the_definition) {
  std::vector<int64_t> sizes;
  for (int64_t k = 1; k <= 40; ++k) sizes.push_back(k);
  for (int64_t k : {128, 300, 1025}) sizes.push_back(k);
  for (const DTypes types : dtype_pairs()) {
    for (int64_t k : sizes) {
      for (bool transpose_a : {false, true}) {
        expect_equals_definition({.m = 19,
                                  .n = 33,
                                  .k = k,
                                  .types = types,
                                  .transpose_a = transpose_a,
                                  .transpose_b = !transpose_a && k % 2 == 0});
      }
      expect_equals_definition(
          {.m = 19, .n = 33, .k = k, .types = types, .transpose_b = true, .packed = true});
    }
  }
}

TEST(Gemm, columns_around_a_block_equal_the_definition) {
  for (const DTypes types : dtype_pairs()) {
    for (int64_t n : {1, 2, 15, 16, 17, 511, 512, 513, 1030}) {
      for (bool packed : {false, true}) {
        for (bool transpose_b : {false, true}) {
          expect_equals_definition({.m = 21,
                                    .n = n,
                                    .k = 32,
                                    .types = types,
                                    .transpose_b = transpose_b,
                                    .bias = true,
                                    .packed = packed});
        }
      }
      expect_equals_definition({.m = 70, .n = n, .k = 100, .types = types, .transpose_a = true});
    }
  }
}

TEST(Gemm, accumulation_adds_to_what_is_there) {
  for (DType in : computed_dtypes()) {
    for (int64_t m : {1, 5, 64, 300}) {
      for (int64_t padding : {0, 4}) {
        Problem p{.m = m,
                  .n = 530,
                  .k = 70,
                  .types = {in, DType::f32},
                  .accumulate = true,
                  .padding = padding};
        expect_equals_definition(p);
        p.transpose_b = true;
        expect_equals_definition(p);
        p.transpose_b = false, p.transpose_a = true;
        expect_equals_definition(p);
      }
    }
  }
}

TEST(Gemm, strided_views_equal_the_definition_and_leave_the_gaps_alone) {
  for (const DTypes types : dtype_pairs()) {
    for (int64_t padding : {1, 8, 65}) {
      for (int64_t m : {1, 7, 64, 257}) {
        Problem p{.m = m, .n = 48, .k = 64, .types = types, .padding = padding};
        expect_equals_definition(p);
        p.transpose_b = true;
        expect_equals_definition(p);
        p.bias = p.packed = true;
        expect_equals_definition(p);
        p.transpose_b = p.bias = p.packed = false, p.transpose_a = true;
        expect_equals_definition(p);
      }
    }
  }
}

TEST(Gemm, no_inner_size_gives_zeros) {
  Matrix a(3, 0), b(0, 5), c(3, 5);
  c.fill([](int64_t, int64_t) { return 9.0; });
  kernels().gemm({.a = a, .b = b, .c = c});
  expect_near(
      c, [](int64_t, int64_t) { return 0.0; }, 0);
}

TEST(Gemm, no_inner_size_gives_the_bias) {
  Matrix a(3, 0), b(0, 2), c(3, 2);
  const std::vector<float> bias = {1, -2};
  kernels().gemm({.a = a, .b = b, .c = c, .bias = bias.data()});
  expect_near(
      c, [&](int64_t, int64_t j) { return bias[j]; }, 0);
}

TEST(Gemm, sums_in_bf16_are_refused) {
  Matrix a(2, 2, DType::bf16), b(2, 2, DType::bf16), c(2, 2, DType::bf16);
  EXPECT_THROW(kernels().gemm({.a = a, .b = b, .c = c, .accumulate = true}), Error);
}

struct Inner {
  int64_t n, k;
};
// Fewer in the children: sanitized, they would take minutes.
const std::vector<Inner>& sizes_of_models() {
  static const std::vector<Inner> all = {
      {1, 5},     {17, 31},  {24, 16},     {32, 8},   {128, 128}, {384, 128}, {256, 100},
      {512, 128}, {530, 64}, {1024, 1000}, {64, 300}, {128, 512}, {100, 1100}};
  static const std::vector<Inner> few = {{17, 31}, {128, 128}, {530, 64}, {64, 300}, {100, 1100}};
  return std::getenv("HEDDLE_MATRIX_UNIT") == nullptr ? all : few;
}

/// Compares rows bit by bit.
void expect_same_rows(const Matrix& part, const Matrix& whole, int64_t begin) {
  for (int64_t r = 0; r < part.rows(); ++r) {
    for (int64_t c = 0; c < part.width(); ++c) {
      ASSERT_EQ(part.get(r, c), whole.get(begin + r, c))
          << "row " << r << " of " << part.rows() << " (row " << begin + r << " of " << whole.rows()
          << "), column " << c;
    }
  }
}

void expect_rows_keep_their_bits(Problem p) {
  SCOPED_TRACE(p.name());
  Operands o(p);
  set_num_threads(1);
  const Matrix whole = o.rows(0, p.m, 0.5);
  for (int threads : {1, 3}) {
    set_num_threads(threads);
    SCOPED_TRACE(fmt::format("{} threads", threads));
    for (int64_t m : {1, 2, 7, 16, 33, 100, 256, 300}) {
      const int64_t begin = std::min<int64_t>(p.m - m, 11 * m % 97);
      expect_same_rows(o.rows(begin, m, 0.5), whole, begin);
      if (testing::Test::HasFatalFailure()) return;
    }
  }
}

class KeepThreads {
 public:
  ~KeepThreads() { set_num_threads(before_); }

 private:
  int before_ = num_threads();
};

TEST(Gemm, a_row_has_the_same_bits_whatever_the_batch_and_the_threads) {
  const KeepThreads keep;
  for (const DTypes types : dtype_pairs()) {
    for (const Inner& s : sizes_of_models()) {
      for (bool transpose_b : {false, true}) {
        for (bool bias : {false, true}) {
          Problem p{.m = 400, .n = s.n, .k = s.k, .types = types, .transpose_b = transpose_b};
          p.bias = bias;
          expect_rows_keep_their_bits(p);
        }
      }
    }
  }
}

TEST(Gemm, a_row_times_packed_weights_has_the_same_bits_whatever_the_batch_and_the_threads) {
  const KeepThreads keep;
  for (const DTypes types : dtype_pairs()) {
    for (const Inner& s : sizes_of_models()) {
      Problem p{.m = 400, .n = s.n, .k = s.k, .types = types, .transpose_b = true, .packed = true};
      expect_rows_keep_their_bits(p);
      p.bias = true, p.padding = 5;
      expect_rows_keep_their_bits(p);
    }
  }
}

// As weight gradients have it: with AMX in parts of the inner dimension, from 2,560 elements on.
TEST(Gemm, a_small_result_of_a_long_inner_dimension_equals_the_definition_for_any_threads) {
  const KeepThreads keep;
  for (int64_t k : {2560, 2723, 11000, 11001}) {
    Problem p{.m = 70, .n = 100, .k = k, .types = {DType::bf16, DType::f32}, .transpose_a = true};
    p.accumulate = k % 2 == 1;
    expect_equals_definition(p);
    Operands o(p);
    set_num_threads(1);
    const Matrix alone = o.rows(0, p.m, 0.5);
    set_num_threads(3);
    expect_same_rows(o.rows(0, p.m, 0.5), alone, 0);
  }
}

// A result of 4 MB and a left factor of 2 MB: more than the caches of a core are to keep.
TEST(Gemm, a_row_of_a_large_product_has_the_same_bits_whatever_the_batch_and_the_threads) {
  const KeepThreads keep;
  for (bool packed : {false, true}) {
    expect_rows_keep_their_bits({.m = 1100,
                                 .n = 2048,
                                 .k = 992,
                                 .types = {DType::bf16, DType::bf16},
                                 .transpose_b = true,
                                 .bias = packed,
                                 .packed = packed});
  }
}

TEST(Gemm, a_row_that_is_added_has_the_same_bits_whatever_the_batch_and_the_threads) {
  const KeepThreads keep;
  for (DType in : computed_dtypes()) {
    for (const Inner& s : sizes_of_models()) {
      Problem p{.m = 400, .n = s.n, .k = s.k, .types = {in, DType::f32}, .accumulate = true};
      expect_rows_keep_their_bits(p);
    }
  }
}

// The view of one row is as wide as the row, that of two keeps the stride of its tensor.
TEST(Gemm, strides_of_a_and_c_do_not_change_the_bits_of_a_row) {
  for (const DTypes types : dtype_pairs()) {
    for (const Inner& s : sizes_of_models()) {
      for (bool packed : {false, true}) {
        Problem p{.m = 37, .n = s.n, .k = s.k, .types = types, .transpose_b = true, .bias = true};
        p.packed = packed;
        SCOPED_TRACE(p.name());
        Operands dense(p);
        // Rows 8 KB apart crowd into a few sets of a cache: products in bf16 copy them.
        for (const int64_t between : {int64_t{16}, 4096 - s.k}) {
          Matrix a(37, s.k, types.in, between), c(37, s.n, types.out, 3);
          a.fill([&](int64_t i, int64_t l) { return dense.a.get(i, l); });
          kernels().gemm({.a = a,
                          .b = dense.b,
                          .c = c,
                          .bias = dense.bias.data(),
                          .transpose_b = true,
                          .constant_b = dense.constant});
          expect_same_rows(c, dense.rows(0, 37), 0);
        }
      }
    }
  }
}

TEST(Gemm, weight_gradients_have_the_bits_of_the_plain_product_for_any_number_of_threads) {
  const KeepThreads keep;
  for (const DTypes types : dtype_pairs()) {
    for (int64_t inner : {1, 63, 64, 300, 1024, 1500, 2500}) {
      for (auto [n, m] : {std::pair<int, int>{128, 384}, {33, 70}, {600, 256}, {40, 1100}}) {
        Problem p{.m = m, .n = n, .k = inner, .types = types, .transpose_a = true};
        SCOPED_TRACE(p.name());
        Operands o(p);
        set_num_threads(1);
        const Matrix one = o.rows(0, m);
        p.transpose_a = false;
        Operands plain(p);
        plain.a.fill([&](int64_t i, int64_t l) { return o.a.get(l, i); });
        EXPECT_TRUE(plain.rows(0, m) == one);
        for (int threads : {2, 3, 4}) {
          set_num_threads(threads);
          EXPECT_TRUE(o.rows(0, m) == one) << threads << " threads";
        }
      }
    }
  }
}

// Rows of a beyond the batch are memory that somebody else used; here they are NaN.
TEST(Gemm, nan_beyond_the_rows_and_in_the_result_changes_nothing) {
  const double nan = std::nan("");
  for (const DTypes types : dtype_pairs()) {
    for (bool transpose_a : {false, true}) {
      for (int64_t inner : {5, 70, 1100}) {
        const int64_t m = 21, n = 40;
        Matrix a(transpose_a ? inner + 64 : m + 64, transpose_a ? m : inner, types.in);
        Matrix b(inner + 64, n, types.in);
        const int64_t used = transpose_a ? inner : m;
        a.fill([&](int64_t r, int64_t c) { return r < used ? 0.01 * (r - 3.0 * c) : nan; });
        b.fill([&](int64_t r, int64_t c) { return r < inner ? 0.02 * (c - 2.0 * r) : nan; });
        Matrix c(m, n, types.out);
        c.fill([&](int64_t, int64_t) { return nan; });
        kernels().gemm({.a = a.view().slice(0, used),
                        .b = b.view().slice(0, inner),
                        .c = c,
                        .transpose_a = transpose_a});
        for (int64_t r = 0; r < m; ++r) {
          for (int64_t j = 0; j < n; ++j) ASSERT_TRUE(std::isfinite(c.get(r, j)));
        }
      }
    }
  }
}

TEST(Gemm, packed_weights_give_the_bits_of_the_plain_product) {
  for (const DTypes types : dtype_pairs()) {
    for (const Inner& s : sizes_of_models()) {
      for (bool transpose_b : {false, true}) {
        Problem p{.m = 50, .n = s.n, .k = s.k, .types = types, .transpose_b = transpose_b};
        p.bias = true;
        SCOPED_TRACE(p.name());
        const Matrix plain = Operands(p).rows(0, 50);
        p.packed = true;
        EXPECT_TRUE(Operands(p).rows(0, 50) == plain);
      }
    }
  }
}

// The first use packs panel by panel and keeps nothing, the second packs all, the third finds it.
TEST(Gemm, each_use_of_a_constant_gives_the_same_bits) {
  for (const DTypes types : dtype_pairs()) {
    for (const Inner& s : sizes_of_models()) {
      for (int64_t m : {1, 9, 300}) {
        Problem p{.m = m, .n = s.n, .k = s.k, .types = types, .transpose_b = true, .bias = true};
        p.packed = true;
        SCOPED_TRACE(p.name());
        Operands o(p);
        const Matrix first = o.rows(0, m);
        EXPECT_TRUE(o.rows(0, m) == first);
        EXPECT_TRUE(o.rows(0, m) == first);
      }
    }
  }
}

// Ties, the smallest numbers, one that becomes infinity, and NaN included.
TEST(Gemm, weights_in_f32_give_the_bits_of_the_same_rounded_to_bf16) {
  for (const Inner& s : sizes_of_models()) {
    for (bool transpose_b : {false, true}) {
      Matrix a(9, s.k, DType::bf16), b(transpose_b ? s.n : s.k, transpose_b ? s.k : s.n);
      Matrix rounded(b.rows(), b.width(), DType::bf16), c(9, s.n), wanted(9, s.n);
      a.fill_normal(1);
      b.fill_normal(2);
      const std::vector<double> special = {1.00390625, 1.01171875, 1e-39,       -3e-41,
                                           3.4e38,     0.0,        std::nan("")};
      for (int64_t i = 0; i < std::min(b.rows(), b.width()); ++i) {
        b.set(i, i, special[static_cast<size_t>(i) % special.size()]);
      }
      kernels().convert(b, rounded);
      for (uint64_t constant : {uint64_t{0}, new_constant()}) {
        for (int use = 0; use < 2; ++use) {
          kernels().gemm(
              {.a = a, .b = b, .c = c, .transpose_b = transpose_b, .constant_b = constant});
          kernels().gemm({.a = a, .b = rounded, .c = wanted, .transpose_b = transpose_b});
          EXPECT_TRUE(c == wanted) << s.n << " columns, " << s.k << " inner, use " << use;
        }
        if (constant != 0) forget_packed(constant);
      }
    }
  }
}

TEST(Gemm, both_factors_transposed_equal_the_definition) {
  for (const DTypes types : dtype_pairs()) {
    expect_equals_definition(
        {.m = 45, .n = 70, .k = 100, .types = types, .transpose_a = true, .transpose_b = true});
  }
}

TEST(Gemm, sums_over_several_inner_chunks_equal_the_definition) {
  for (const DTypes types : dtype_pairs()) {
    for (bool bias : {false, true}) {
      Problem p{.m = 37, .n = 70, .k = 3000, .types = types, .transpose_b = true, .bias = bias};
      expect_equals_definition(p);
      expect_rows_keep_their_bits({.m = 300, .n = 40, .k = 3000, .types = types, .bias = bias});
    }
  }
}

TEST(Gemm, a_constant_that_was_forgotten_is_packed_anew) {
  Matrix a(4, 16), b(8, 16), c(4, 8);
  a.fill_normal(1);
  const uint64_t constant = new_constant();
  for (uint32_t seed : {2u, 3u}) {
    b.fill_normal(seed);
    kernels().gemm({.a = a, .b = b, .c = c, .transpose_b = true, .constant_b = constant});
    expect_near(
        c,
        [&](int64_t i, int64_t j) {
          double sum = 0;
          for (int64_t l = 0; l < 16; ++l) sum += a.get(i, l) * b.get(j, l);
          return sum;
        },
        1e-5);
    forget_packed(constant);
  }
}

}  // namespace
}  // namespace heddle::kernel_test
