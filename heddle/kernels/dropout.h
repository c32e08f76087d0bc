// Which elements are dropped.
#pragma once

#include <cstdint>
#include "heddle/base/rng.h"

namespace heddle {

/// Which elements are dropped, as a pure function of the row's place in the data and the column.
/// Element (r, c): block = c / 128, lane = c % 16, slot = (c % 128) / 16;
/// words = philox({block * 16 + lane, position[r], sample[r], head}, key);
/// u = 16 bits of words[slot / 2], the lower half when slot is even; dropped if u < threshold().
/// Kept elements are multiplied by keep_scale().
struct Dropout {
  float p = 0;  ///< probability of being dropped; 0 switches dropout off
  RngKey key;
  const uint32_t* sample = nullptr;    ///< [rows] number of the sample in the epoch
  const uint32_t* position = nullptr;  ///< [rows] position of the row in its sequence
  uint32_t threshold() const { return static_cast<uint32_t>(p * 65536.0f + 0.5f); }
  float keep_scale() const { return 65536.0f / (65536.0f - static_cast<float>(threshold())); }
};

}  // namespace heddle
