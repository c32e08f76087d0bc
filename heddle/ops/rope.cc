// The rotation, and its gradient: the rotation back.
#include "heddle/ops/rope.h"

#include <cmath>
#include <memory>
#include <vector>

#include "heddle/base/parallel.h"
#include "heddle/tensor/dispatch.h"

namespace heddle {
namespace {

// Turns row x into y. cosine, sine: [d / 2]
template <class T>
void turn(const T* x, T* y, const RopeOptions& o, int64_t width, const float* cosine,
          const float* sine) {
  const int64_t half = o.head_width / 2;
  for (int64_t begin = 0; begin < o.columns; begin += o.head_width) {
    for (int64_t j = begin; j < begin + half; ++j) {
      const auto a = static_cast<float>(x[j]), b = static_cast<float>(x[j + half]);
      const float c = cosine[j - begin], s = sine[j - begin];
      y[j] = static_cast<T>(a * c - b * s);
      y[j + half] = static_cast<T>(a * s + b * c);
    }
  }
  for (int64_t j = o.columns; j < width; ++j) y[j] = x[j];
}

Tensor turned(const Tensor& x, std::span<const int32_t> places, const RopeOptions& o,
              double direction) {
  Tensor y = empty_like(x);
  const Rows from = x.rows(), to = y.rows();
  const int64_t half = o.head_width / 2;
  std::vector<double> frequencies;
  for (int64_t j = 0; j < half; ++j) {
    frequencies.push_back(
        std::pow(o.theta, -2.0 * static_cast<double>(j) / static_cast<double>(o.head_width)));
  }
  visit_float(x.dtype(), [&]<class T>() {
    parallel_blocks(from.rows, 64, [&](int64_t begin, int64_t end) {
      std::vector<float> cosine(half), sine(half);
      for (int64_t r = begin; r < end; ++r) {
        for (int64_t j = 0; j < half; ++j) {
          const double angle = direction * places[r] * frequencies[j];
          cosine[j] = static_cast<float>(std::cos(angle));
          sine[j] = static_cast<float>(std::sin(angle));
        }
        turn(from.row<T>(r), to.row<T>(r), o, from.width, cosine.data(), sine.data());
      }
    });
  });
  return y;
}

}  // namespace

Tensor rope(const Tensor& x, std::span<const int32_t> places, const RopeOptions& o) {
  check(x.rank() == 2 && x.size(0) == static_cast<int64_t>(places.size()), ErrorKind::shape,
        "rope: x is {}, with {} places; each row needs one", x.shape(), places.size());
  check(o.head_width >= 2 && o.head_width % 2 == 0 && o.columns % o.head_width == 0 &&
            o.columns <= x.size(1),
        ErrorKind::shape, "rope: {} columns of {} in heads of {}; heads must be even and whole",
        o.columns, x.shape(), o.head_width);
  const Tensor y = turned(x, places, o, 1);
  if (!needs_grad({&x})) return y;
  const auto kept = std::make_shared<const std::vector<int32_t>>(places.begin(), places.end());
  return record("rope", {x}, y,
                [kept, o](const Tensor& dy) -> Grads { return {turned(dy, *kept, o, -1)}; });
}

}  // namespace heddle
