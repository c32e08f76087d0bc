// Numbers as results and pages give them.
#pragma once

#include <cmath>

namespace heddle {

/// To so many digits behind the point.
inline double rounded(double x, int digits) {
  const double scale = std::pow(10, digits);
  return std::round(x * scale) / scale;
}

}  // namespace heddle
