// Products with weights of four and eight bits in groups against their definition. gemm_test.cc
// runs these again in children that see fewer instructions.
#include "tests/kernels/kernel_case.h"

namespace heddle::kernel_test {
namespace {

struct Format {
  int bits;
  int64_t group;
};
constexpr Format kFormats[] = {{4, 32}, {4, 64}, {8, 32}, {8, 64}};

/// A matrix rounded into memory of its own, where values begin at an odd address, as in a file.
class Quantized {
 public:
  Quantized(Matrix& w, const Format& f) {
    rows_ = {.rows = w.rows(), .width = w.width(), .bits = f.bits, .group = f.group};
    values_.resize(static_cast<size_t>(rows_.value_bytes()) + 1);
    scales_.resize(static_cast<size_t>(rows_.scale_count()));
    rows_.values = values_.data() + 1, rows_.scales = scales_.data();
    quantize(w, rows_);
  }
  Quantized(const Quantized&) = delete;
  Quantized& operator=(const Quantized&) = delete;
  const QuantizedRows& rows() const { return rows_; }
  /// All values, whatever their bits.
  void fill(uint8_t byte) { std::fill(values_.begin() + 1, values_.end(), byte); }

 private:
  QuantizedRows rows_;
  std::vector<uint8_t> values_;
  std::vector<bf16> scales_;
};

/// A row of which each group is divided by its largest magnitude / 127 and rounded.
std::vector<double> rounded(const Matrix& x, int64_t row, int64_t group) {
  std::vector<double> values;
  for (int64_t begin = 0; begin < x.width(); begin += group) {
    const int64_t end = std::min(begin + group, x.width());
    float largest = 0;
    for (int64_t c = begin; c < end; ++c) {
      largest = std::max(largest, std::fabs(static_cast<float>(x.get(row, c))));
    }
    const float factor = largest > 0 ? 127.0f / largest : 0;
    for (int64_t c = begin; c < end; ++c) {
      const float q = std::nearbyint(static_cast<float>(x.get(row, c)) * factor);
      values.push_back(static_cast<double>(q) * (largest / 127));
    }
  }
  return values;
}

struct Problem {
  int64_t m, n, k;
  DType type = DType::f32, result = DType::f32;
  Format format = {4, 32};
  int64_t padding = 0;
};

class GroupProduct {
 public:
  explicit GroupProduct(const Problem& p)
      : p_(p),
        a(p.m, p.k, p.type, p.padding),
        w(p.n, p.k),
        bias_(p.n),
        b_((a.fill_normal(1), w.fill_normal(2)), p.format) {
    for (int64_t c = 0; c < p.n; ++c) bias_[c] = 0.25f * static_cast<float>(c % 7) - 0.5f;
  }
  GemmArgs args(int64_t begin, int64_t count, Matrix& c) {
    return {
        .a = a.view().slice(begin, count), .c = c, .bias = bias_.data(), .quantized_b = b_.rows()};
  }
  void fill_weights(uint8_t byte) { b_.fill(byte); }
  Matrix rows(int64_t begin, int64_t count) {
    Matrix c(count, p_.n, p_.result, p_.padding);
    kernels().gemm(args(begin, count, c));
    return c;
  }
  /// scale: of the sums between which f32 rounds.
  void expect_equals_definition(double scale = 10) {
    SCOPED_TRACE(fmt::format("{}x{}x{} {} {} {} bits in groups of {}", p_.m, p_.n, p_.k,
                             dtype_name(p_.type), dtype_name(p_.result), p_.format.bits,
                             p_.format.group));
    std::vector<std::vector<double>> left;
    for (int64_t i = 0; i < p_.m; ++i) left.push_back(rounded(a, i, p_.format.group));
    expect_near(
        rows(0, p_.m),
        [&](int64_t i, int64_t j) {
          double sum = bias_[j];
          for (int64_t l = 0; l < p_.k; ++l) sum += left[i][l] * b_.rows().element(j, l);
          return sum;
        },
        p_.result == DType::bf16 ? 0x1p-8 : 1e-6,
        scale);  // sums of a group are exact; f32 from there
  }

 private:
  Problem p_;

 public:
  Matrix a, w;

 private:
  std::vector<float> bias_;
  Quantized b_;
};

TEST(GemmGroups, products_equal_the_definition) {
  for (const Format& format : kFormats) {
    for (const DType type : computed_dtypes()) {
      for (const auto& [m, n, k] : {std::array<int64_t, 3>{1, 1, 1},
                                    {1, 40, 64},
                                    {2, 31, 63},
                                    {3, 64, 32},
                                    {5, 33, 65},
                                    {7, 96, 200},
                                    {13, 5, 128},
                                    {40, 70, 130}}) {
        GroupProduct({m, n, k, type, DType::f32, format}).expect_equals_definition();
        GroupProduct({m, n, k, type, type, format, 3}).expect_equals_definition();
      }
    }
  }
}

// Where sums of bytes times bytes are largest; -128 is no value that we round to.
TEST(GemmGroups, the_largest_weights_and_activations_stay_exact) {
  for (const Format& format : kFormats) {
    for (const int byte : {0x00, 0x7f, 0x80, 0x81, 0xff}) {
      for (const int64_t m : {1, 2, 3, 5}) {
        GroupProduct product({m, 40, 256, DType::f32, DType::f32, format});
        for (const auto& sign_of : {+[](int64_t) { return 1; }, +[](int64_t) { return -1; },
                                    +[](int64_t c) { return c % 2 == 0 ? 1 : -1; },
                                    +[](int64_t c) { return c / 2 % 2 == 0 ? 1 : -1; }}) {
          product.a.fill([&](int64_t, int64_t c) { return sign_of(c); });
          product.fill_weights(static_cast<uint8_t>(byte));
          product.expect_equals_definition(100);
        }
      }
    }
  }
}

TEST(GemmGroups, a_row_has_the_same_bits_whatever_the_batch_and_the_threads) {
  const int before = num_threads();
  for (const Format& format : kFormats) {
    GroupProduct product({300, 200, 512, DType::bf16, DType::f32, format});
    set_num_threads(1);
    const Matrix whole = product.rows(0, 300);
    for (const int threads : {1, 4}) {
      set_num_threads(threads);
      for (const int64_t m : {1, 2, 5, 7, 13, 100}) {
        const Matrix part = product.rows(11 * m % 97, m);
        for (int64_t r = 0; r < m; ++r) {
          for (int64_t c = 0; c < 200; ++c) {
            ASSERT_EQ(part.get(r, c), whole.get(11 * m % 97 + r, c)) << m << " rows, row " << r;
          }
        }
      }
    }
  }
  set_num_threads(before);
}

TEST(GemmGroups, some_columns_are_those_of_the_whole) {
  GroupProduct product({3, 200, 96});
  const Matrix whole = product.rows(0, 3);
  for (const int64_t first : {0, 64, 192}) {
    Matrix part(3, std::min<int64_t>(100, 200 - first));
    GemmArgs args = product.args(0, 3, part);
    args.bias += first, args.first = first;
    kernels().gemm(args);
    for (int64_t r = 0; r < 3; ++r) {
      for (int64_t c = 0; c < part.width(); ++c) {
        ASSERT_EQ(part.get(r, c), whole.get(r, first + c));
      }
    }
  }
}

TEST(GemmGroups, what_is_added_and_activations_come_behind_the_product) {
  for (const DType type : computed_dtypes()) {
    GroupProduct product({9, 100, 64, type, type, {8, 32}});
    Matrix more(9, 100, type), c(9, 100, type), want(9, 100);
    more.fill_normal(3);
    for (const Activation kind : {Activation::relu, Activation::gelu}) {
      GemmArgs args = product.args(0, 9, c);
      args.added = more, args.activation = kind;
      kernels().gemm(args);
      args.c = want;
      definition::gemm(args);
      // An activation on the edge of two integers may fall on either side: a unit (4 / 127) times
      // a weight (4). In bf16 the sum is rounded before something is added.
      expect_near(
          c, [&](int64_t i, int64_t j) { return want.get(i, j); }, 0x1p-7, 16);
    }
  }
}

TEST(GemmGroups, a_row_of_zeros_gives_the_bias_and_nan_gives_nan) {
  for (const Format& format : kFormats) {
    GroupProduct product({3, 40, 70, DType::f32, DType::f32, format});
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
}

TEST(GemmGroups, what_groups_cannot_do_is_refused) {
  GroupProduct product({2, 40, 64});
  Matrix c(2, 40), wide(2, 41), transposed(64, 2);
  GemmArgs args = product.args(0, 2, c);
  args.accumulate = true;
  EXPECT_THROW(kernels().gemm(args), Error);
  args = product.args(0, 2, wide);
  EXPECT_THROW(kernels().gemm(args), Error);
  args = product.args(0, 2, c);
  args.a = transposed, args.transpose_a = true;
  EXPECT_THROW(kernels().gemm(args), Error);
  args = product.args(0, 2, c);
  args.quantized_b.group = 48;
  EXPECT_THROW(kernels().gemm(args), Error);
}

TEST(Quantized, rounding_is_as_close_as_the_format_allows) {
  for (const Format& format : kFormats) {
    Matrix w(70, 100);
    w.fill_normal(5);
    w.fill([&](int64_t r, int64_t c) { return r == 3 ? 0 : w.get(r, c); });
    const Quantized q(w, format);
    Matrix back(70, 100);
    dequantize(q.rows(), back);
    for (int64_t r = 0; r < 70; ++r) {
      for (int64_t c = 0; c < 100; ++c) {
        const double scale = std::fabs(q.rows().scale(r, c)), x = w.get(r, c);
        ASSERT_EQ(back.get(r, c), q.rows().element(r, c));
        const int value = q.rows().value(r, c);
        const bool is_clipped = format.bits == 4 && (value == 7 || value == -8);
        const double most = r == 3 ? 0 : is_clipped ? 1.5 * scale : 0.5 * scale * (1 + 1e-6);
        ASSERT_NEAR(back.get(r, c), x, most) << r << ", " << c;
      }
    }
    std::vector<int32_t> ids = {69, 0, 3};
    Matrix some(3, 100);
    dequantize(q.rows(), ids, some);
    for (size_t i = 0; i < ids.size(); ++i) {
      for (int64_t c = 0; c < 100; ++c) {
        ASSERT_EQ(some.get(static_cast<int64_t>(i), c), back.get(ids[i], c));
      }
    }
  }
}

// The layout is that of files: it must not change.
TEST(Quantized, values_lie_where_the_documentation_says) {
  Matrix w(33, 70);
  w.fill([](int64_t r, int64_t c) { return static_cast<double>((r * 31 + c * 7) % 13) - 6; });
  for (const Format& format : kFormats) {
    const Quantized quantized(w, format);
    const QuantizedRows& q = quantized.rows();
    const int64_t groups = (70 + format.group - 1) / format.group;
    for (int64_t r = 0; r < 33; ++r) {
      for (int64_t c = 0; c < 70; ++c) {
        const int64_t place = r / 32 * groups + c / format.group, e = c % format.group;
        const uint8_t* const values = q.values + place * (32 * format.group * format.bits / 8);
        const auto scale = static_cast<float>(q.scales[place * 32 + r % 32]);
        int value = 0;
        if (format.bits == 8) {
          value = static_cast<int8_t>(values[e / 4 * 128 + r % 32 * 4 + e % 4]);
        } else {
          const int64_t half = format.group / 2, i = e % half;
          const uint8_t byte = values[i / 4 * 128 + r % 32 * 4 + i % 4];
          value = (e < half ? byte & 15 : byte >> 4) - 8;
        }
        ASSERT_EQ(q.element(r, c), scale * static_cast<float>(value)) << r << ", " << c;
      }
    }
  }
}

}  // namespace
}  // namespace heddle::kernel_test
