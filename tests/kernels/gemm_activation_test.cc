// Products with an activation behind them against the product alone and the activation's own
// kernel: the same bits, wherever results go. gemm_units_test.cc runs them again with fewer
// instructions.
#include <cstdlib>
#include <cstring>
#include <memory>

#include "heddle/kernels/activation.h"
#include "tests/kernels/kernel_case.h"

namespace heddle::kernel_test {
namespace {

/// bf16 that begin `offset` elements behind the beginning of a line of the caches.
class Lines {
 public:
  Lines(int64_t rows, int64_t width, int64_t offset)
      : bytes_(static_cast<char*>(std::aligned_alloc(64, (rows * width + offset + 63) / 32 * 64))),
        view_{bytes_.get() + offset * 2, rows, width, width, DType::bf16} {
    std::memset(view_.data, 0x11, rows * width * 2);
  }
  operator Rows() const { return view_; }  // NOLINT: stands for its rows in calls
  bool equals(const Lines& other) const {
    return std::memcmp(view_.data, other.view_.data, view_.rows * view_.width * 2) == 0;
  }

 private:
  struct Free {
    void operator()(char* p) const { std::free(p); }
  };
  std::unique_ptr<char, Free> bytes_;
  Rows view_;
};

struct Shape {
  int64_t m, n, k, offset;
};

void expect_bits_of_both_steps(const Shape& s, Activation activation, bool int8) {
  SCOPED_TRACE(fmt::format("{} x {} x {}, offset {}, activation {}{}", s.m, s.n, s.k, s.offset,
                           static_cast<int>(activation), int8 ? ", int8" : ""));
  Matrix a(s.m, s.k, DType::bf16), b(s.n, s.k, DType::bf16), added(s.m, s.n, DType::bf16);
  a.fill_normal(1), b.fill_normal(2, 2 / std::sqrt(static_cast<double>(s.k)));
  added.fill_normal(3);
  const std::vector<float> bias(s.n, 0.125f);
  const uint64_t constant = new_constant();
  const auto multiply = [&](const Rows& c, Activation kind, const Rows& kept, const Rows& more) {
    kernels().gemm({.a = a,
                    .b = b,
                    .c = c,
                    .bias = bias.data(),
                    .transpose_b = true,
                    .constant_b = constant,
                    .added = more,
                    .activation = kind,
                    .pre_activation = kept,
                    .int8 = int8});
  };
  const Lines z(s.m, s.n, s.offset), y(s.m, s.n, s.offset), kept(s.m, s.n, s.offset);
  const Lines expected(s.m, s.n, s.offset);
  multiply(z, Activation::none, {}, {});
  kernels().activation(activation, z, {}, expected);
  multiply(y, activation, kept, {});
  EXPECT_TRUE(y.equals(expected));
  EXPECT_TRUE(kept.equals(z));
  const Lines alone(s.m, s.n, s.offset);
  multiply(alone, activation, {}, {});
  EXPECT_TRUE(alone.equals(expected));
  multiply(z, Activation::none, {}, added);
  kernels().activation(activation, z, {}, expected);
  multiply(y, activation, {}, added);
  EXPECT_TRUE(y.equals(expected));
  for (const auto& [kind, want] : {std::pair(activation, &expected), {Activation::none, &z}}) {
    const Lines in_place(s.m, s.n, s.offset);
    kernels().convert(added, in_place);
    multiply(in_place, kind, {}, in_place);
    EXPECT_TRUE(in_place.equals(*want));
  }
  forget_packed(constant);
}

// One row and many, panels that are not full, a long inner dimension, results of 13 MB, which are
// stored past the caches, and the same where no line begins with a row.
TEST(Gemm, an_activation_behind_a_product_has_the_bits_of_its_own_kernel) {
  for (const Activation activation :
       {Activation::gelu, Activation::gelu_new, Activation::relu, Activation::silu}) {
    for (const bool int8 : {false, true}) {
      for (const Shape& s :
           {Shape{1, 64, 64, 0}, Shape{33, 530, 100, 0}, Shape{300, 96, 1100, 1},
            Shape{70, 32, 64, 0}, Shape{3400, 2048, 64, 0}, Shape{3400, 2048, 64, 8}}) {
        expect_bits_of_both_steps(s, activation, int8);
        if (HasFailure()) return;
      }
    }
  }
}

// Sums of one and of several chunks of the inner dimension, which may wait in c.
TEST(Gemm, what_is_added_is_added_behind_the_product_and_may_be_c_itself) {
  for (const DType in : computed_dtypes()) {
    for (const DType out : {DType::f32, in}) {
      for (const int64_t k : {64, 1100, 2100}) {
        SCOPED_TRACE(fmt::format("{} -> {}, {}", dtype_name(in), dtype_name(out), k));
        Matrix a(70, k, in), b(96, k, in), added(70, 96, out), apart(70, 96, out);
        a.fill_normal(1), b.fill_normal(2), added.fill_normal(3);
        GemmArgs args{.a = a, .b = b, .c = apart, .transpose_b = true, .added = added};
        kernels().gemm(args);
        Matrix sum(70, 96, out);
        GemmArgs plain = args;
        plain.added = {}, plain.c = sum;
        kernels().gemm(plain);
        kernels().add(sum, added, sum);
        EXPECT_TRUE(apart == sum);
        args.c = added;
        kernels().gemm(args);
        EXPECT_TRUE(added == apart);
      }
    }
  }
}

}  // namespace
}  // namespace heddle::kernel_test
