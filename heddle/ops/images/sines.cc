// Sines in plain loops; each has its slope beside it.
#include "heddle/ops/images/sines.h"

#include <cmath>
#include <numbers>

#include "heddle/base/error.h"
#include "heddle/base/parallel.h"
#include "heddle/base/profile.h"

namespace heddle {
namespace {

constexpr int64_t kRowsAtOnce = 16;

// What each pair of a number divides its angle by.
std::vector<double> divisors_of(int64_t width, double temperature) {
  std::vector<double> divisors;
  for (int64_t j = 0; j < width; j += 2) {
    divisors.push_back(std::pow(temperature, static_cast<double>(j) / static_cast<double>(width)));
  }
  return divisors;
}

Tensor sines_of(const Tensor& x, const std::vector<double>& divisors) {
  const int64_t numbers = x.size(1), width = 2 * std::ssize(divisors);
  const Tensor y = Tensor::empty({x.size(0), numbers * width}, DType::f32);
  const Rows from = x.rows(), to = y.rows();
  if (is_counting()) {
    count_work({4 * (x.elements() + y.elements()), 0});
    return y;
  }
  parallel_blocks(x.size(0), kRowsAtOnce, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      float* at = to.row<float>(r);
      for (int64_t k = 0; k < numbers; ++k) {
        const double angle = static_cast<double>(from.row<float>(r)[k]) * 2 * std::numbers::pi;
        for (const double divisor : divisors) {
          *at++ = static_cast<float>(std::sin(angle / divisor));
          *at++ = static_cast<float>(std::cos(angle / divisor));
        }
      }
    }
  });
  return y;
}

}  // namespace

Tensor sines(const Tensor& x, int64_t width, double temperature) {
  check(x.rank() == 2 && x.dtype() == DType::f32 && width > 0 && width % 2 == 0, ErrorKind::shape,
        "sines of width {} of {} {}; an even width is needed, and numbers [rows, n] in f32", width,
        x.shape(), dtype_name(x.dtype()));
  const std::vector<double> divisors = divisors_of(width, temperature);
  const Tensor y = sines_of(x, divisors);
  // The slope of a sine is the cosine beside it, that of this less the sine; by 2 pi / divisor.
  return record("sines", {x}, y,
                [y = y.detached(), divisors, numbers = x.size(1)](const Tensor& dy) -> Grads {
                  const Tensor dx = Tensor::empty({y.size(0), numbers}, DType::f32);
                  for (int64_t r = 0; r < y.size(0); ++r) {
                    const float *at = y.rows().row<float>(r), *d = dy.rows().row<float>(r);
                    for (int64_t k = 0; k < numbers; ++k) {
                      double sum = 0;
                      for (const double divisor : divisors) {
                        sum += (double{d[0]} * at[1] - double{d[1]} * at[0]) / divisor;
                        at += 2, d += 2;
                      }
                      dx.rows().row<float>(r)[k] = static_cast<float>(sum * 2 * std::numbers::pi);
                    }
                  }
                  return {dx};
                });
}

}  // namespace heddle
