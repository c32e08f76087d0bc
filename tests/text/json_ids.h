// Ids of tokens as fixtures hold them.
#pragma once

#include <cstdint>
#include <vector>

#include "heddle/base/json/json.h"

namespace heddle {

using Ids = std::vector<int32_t>;

inline Ids ids_of(const Json& json) {
  const std::vector<int64_t> wide = json.as_ints();
  return {wide.begin(), wide.end()};
}

}  // namespace heddle
