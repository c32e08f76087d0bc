// The table of costs of layers, by its formulas.
#include "heddle/inspect/complexity.h"

#include <algorithm>
#include <cmath>

#include "heddle/base/error.h"

namespace heddle::inspect {

std::vector<LayerCost> layer_costs(const LayerSizes& s) {
  check(s.n >= 1 && s.d >= 1, ErrorKind::usage,
        "a layer over {} positions of width {}: both must be "
        "at least 1",
        s.n, s.d);
  check(s.kernel >= 2, ErrorKind::usage, "`kernel` is {}; a convolution sees at least 2 positions",
        s.kernel);
  check(s.reach >= 1, ErrorKind::usage, "`reach` is {}; it must be at least 1", s.reach);
  const auto n = static_cast<double>(s.n), d = static_cast<double>(s.d);
  const double k = std::min(static_cast<double>(s.kernel), std::max(2.0, n));
  const double r = std::min(static_cast<double>(s.reach), n);
  const double dilated = std::max(1.0, std::ceil(std::log(n) / std::log(k) - 1e-9));
  return {{"recurrent", "n d^2", n * d * d, "n", n, "n", n},
          {"convolutional", "k n d^2", k * n * d * d, "1", 1, "log_k n", dilated},
          {"self-attention", "n^2 d", n * n * d, "1", 1, "1", 1},
          {"restricted self-attention", "r n d", r * n * d, "1", 1, "n / r", std::ceil(n / r)}};
}

}  // namespace heddle::inspect
