// The sinusoidal table: Vaswani et al. 2017, section 3.5.
#include "heddle/nn/position.h"

#include <cmath>

namespace heddle::nn {

Tensor sinusoidal_table(int64_t positions, int64_t width, const SinusoidalOptions& options) {
  check(width % 2 == 0, ErrorKind::shape,
        "sinusoidal positions need an even width, not {}; each frequency has a sine and a cosine",
        width);
  const bool halves = options.layout == "halves";
  const bool is_t2t = options.frequencies == "tensor2tensor";
  const int64_t half = width / 2;
  Tensor table = Tensor::empty({positions, width}, DType::f32);
  for (int64_t i = 0; i < half; ++i) {
    const double exponent =
        is_t2t ? static_cast<double>(i) / static_cast<double>(std::max<int64_t>(1, half - 1))
               : 2.0 * static_cast<double>(i) / static_cast<double>(width);
    const double frequency = std::pow(10000.0, -exponent);
    for (int64_t pos = 0; pos < positions; ++pos) {
      float* row = table.data<float>() + pos * width;
      const double angle = static_cast<double>(pos) * frequency;
      row[halves ? i : 2 * i] = static_cast<float>(std::sin(angle));
      row[halves ? half + i : 2 * i + 1] = static_cast<float>(std::cos(angle));
    }
  }
  return table;
}

}  // namespace heddle::nn
