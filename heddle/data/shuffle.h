// Random order, the same with every standard library.
#pragma once

#include <utility>
#include <vector>

#include "heddle/base/rng.h"

namespace heddle {

/// Fisher-Yates; std::shuffle differs between libraries.
template <class T>
void shuffle_values(std::vector<T>& values, RngStream& random) {
  for (size_t i = values.size(); i > 1; --i) std::swap(values[i - 1], values[random.below(i)]);
}

}  // namespace heddle
