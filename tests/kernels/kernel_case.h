// What the tests of kernels share: matrices of any dtype and stride, every instruction set and
// thread count in turn.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <new>
#include <random>
#include <string>
#include <vector>

#include "heddle/base/error.h"
#include "heddle/base/parallel.h"
#include "heddle/kernels/kernels.h"
#include "hwy/targets.h"

namespace heddle::kernel_test {

/// Widths around the vector lengths (4, 8, 16), the dropout block (128), and a usual one.
inline std::vector<int64_t> ragged_widths() {
  std::vector<int64_t> widths;
  for (int64_t w = 1; w <= 40; ++w) widths.push_back(w);
  for (int64_t w = 127; w <= 130; ++w) widths.push_back(w);
  widths.push_back(512);
  return widths;
}

inline const std::vector<DType>& computed_dtypes() {
  static const std::vector<DType> dtypes = {DType::f32, DType::bf16};
  return dtypes;
}

/// Memory that begins at a line of the caches, as that of tensors does.
template <class T>
struct AtLines {
  using value_type = T;
  static constexpr std::align_val_t kLine{64};
  T* allocate(size_t n) { return static_cast<T*>(::operator new(n * sizeof(T), kLine)); }
  void deallocate(T* p, size_t) { ::operator delete(p, kLine); }
  bool operator==(const AtLines&) const = default;
};

/// A matrix of f32 or bf16 with `padding` elements between its rows, which must stay as they are.
class Matrix {
 public:
  Matrix(int64_t rows, int64_t width, DType dtype = DType::f32, int64_t padding = 0)
      : rows_(rows),
        width_(width),
        stride_(width + padding),
        dtype_(dtype),
        bytes_(static_cast<size_t>(std::max<int64_t>(1, rows * stride_) * size_of(dtype)), kGuard) {
  }

  Rows view() { return {bytes_.data(), rows_, width_, stride_, dtype_}; }
  operator Rows() { return view(); }  // NOLINT: stands for its rows in calls
  int64_t rows() const { return rows_; }
  int64_t width() const { return width_; }

  double get(int64_t r, int64_t c) const {
    if (dtype_ == DType::f32) return at<float>(r, c);
    return static_cast<double>(static_cast<float>(at<bf16>(r, c)));
  }
  void set(int64_t r, int64_t c, double value) {
    const auto v = static_cast<float>(value);
    if (dtype_ == DType::f32) put(r, c, v);
    if (dtype_ == DType::bf16) put(r, c, bf16(v));
  }
  /// Fills with f(row, column).
  Matrix& fill(const std::function<double(int64_t, int64_t)>& f) {
    for (int64_t r = 0; r < rows_; ++r) {
      for (int64_t c = 0; c < width_; ++c) set(r, c, f(r, c));
    }
    return *this;
  }
  Matrix& fill_normal(uint32_t seed, double scale = 1) {
    std::mt19937 generator(seed);
    std::normal_distribution<double> normal(0, scale);
    return fill([&](int64_t, int64_t) { return normal(generator); });
  }
  bool padding_is_untouched() const {
    const auto size = static_cast<size_t>(size_of(dtype_));
    for (int64_t r = 0; r < rows_; ++r) {
      const char* end = bytes_.data() + static_cast<size_t>(r * stride_ + width_) * size;
      for (size_t i = 0; i < static_cast<size_t>(stride_ - width_) * size; ++i) {
        if (end[i] != kGuard) return false;
      }
    }
    return true;
  }
  friend bool operator==(const Matrix&, const Matrix&) = default;

 private:
  static constexpr char kGuard = 0x7f;  // bf16 and f32 of 0x7f7f7f7f: huge, seen if it is read

  template <class T>
  T at(int64_t r, int64_t c) const {
    T v;
    std::memcpy(&v, bytes_.data() + static_cast<size_t>(r * stride_ + c) * sizeof(T), sizeof(T));
    return v;
  }
  template <class T>
  void put(int64_t r, int64_t c, T v) {
    std::memcpy(bytes_.data() + static_cast<size_t>(r * stride_ + c) * sizeof(T), &v, sizeof(T));
  }

  int64_t rows_, width_, stride_;
  DType dtype_;
  std::vector<char, AtLines<char>> bytes_;
};

/// Relative rounding error of a dtype.
inline double epsilon(DType dtype) { return dtype == DType::f32 ? 0x1p-24 : 0x1p-8; }

/// Expects |got - want(r, c)| <= tolerance * (|want| + scale) everywhere, and the padding
/// untouched.
inline void expect_near(const Matrix& got, const std::function<double(int64_t, int64_t)>& want,
                        double tolerance, double scale = 1) {
  EXPECT_TRUE(got.padding_is_untouched());
  for (int64_t r = 0; r < got.rows(); ++r) {
    for (int64_t c = 0; c < got.width(); ++c) {
      const double w = want(r, c);
      ASSERT_NEAR(got.get(r, c), w, tolerance * (std::fabs(w) + scale))
          << "row " << r << ", column " << c << " of [" << got.rows() << ", " << got.width() << "]";
    }
  }
}

/// Runs f under every instruction set of this machine in turn.
inline void for_each_target(const std::function<void()>& f) {
  kernels();  // which looks once at what the machine has, and must not see less
  for (int64_t target : {HWY_SSE4, HWY_AVX2, HWY_AVX3, HWY_NEON}) {
    hwy::SetSupportedTargetsForTest(0);
    if ((hwy::SupportedTargets() & target) == 0) continue;
    hwy::SetSupportedTargetsForTest(target);
    SCOPED_TRACE(hwy::TargetName(target));
    f();
  }
  hwy::SetSupportedTargetsForTest(0);
}

/// Runs f under every instruction set, for every ragged width and computed dtype.
inline void for_each_case(const std::function<void(int64_t width, DType dtype)>& f) {
  for_each_target([&] {
    for (DType dtype : computed_dtypes()) {
      for (int64_t width : ragged_widths()) {
        SCOPED_TRACE(std::string(dtype_name(dtype)) + ", width " + std::to_string(width));
        f(width, dtype);
        if (testing::Test::HasFatalFailure()) return;
      }
    }
  });
}

/// Expects run() to give equal results, bit by bit, with 1 and 4 threads, on every instruction set.
template <class Run>
void expect_same_bits_for_any_threads(const Run& run) {
  const int threads = num_threads();
  for_each_target([&] {
    set_num_threads(1);
    const auto one = run();
    set_num_threads(4);
    const auto four = run();
    EXPECT_TRUE(one == four) << "1 and 4 threads differ";
  });
  set_num_threads(threads);
}

/// A dropout with its row numbers.
struct DropoutCase {
  std::vector<uint32_t> sample, position;
  Dropout dropout;
  explicit DropoutCase(int64_t rows, float p) : sample(rows), position(rows) {
    for (int64_t r = 0; r < rows; ++r) {
      sample[r] = static_cast<uint32_t>(17 + r / 3);
      position[r] = static_cast<uint32_t>(r % 3);
    }
    dropout = {.p = p,
               .key = {0x12345678u, 0x9abcdef0u},
               .sample = sample.data(),
               .position = position.data()};
  }
};

}  // namespace heddle::kernel_test
