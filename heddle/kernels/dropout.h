// Which elements are dropped.
#pragma once

#include <algorithm>
#include <cstdint>

#include "heddle/base/rng.h"

namespace heddle {

/// Which elements are dropped, as a pure function of the row's place in the data and the column.
/// Element (r, c): block = c / 128, lane = c % 16, slot = (c % 128) / 16;
/// words = philox({block * 16 + lane, position[r], sample[r], head}, key);
/// u = 16 bits of words[slot / 2], the lower half when slot is even; dropped if u < threshold().
/// Kept elements are multiplied by keep_scale(). With `of_samples` all elements of a sample have
/// the fate of position 0 and column 0; attention weights have no such dropout.
struct Dropout {
  float p = 0;  ///< probability of being dropped; 0 switches dropout off
  RngKey key;
  const uint32_t* sample = nullptr;    ///< [rows] number of the sample in the epoch
  const uint32_t* position = nullptr;  ///< [rows] position of the row in its sequence
  bool of_samples = false;
  /// At most 65535: with p just below 1 some may be kept.
  uint32_t threshold() const {
    return std::min<uint32_t>(65535, static_cast<uint32_t>(p * 65536.0f + 0.5f));
  }
  float keep_scale() const { return 65536.0f / (65536.0f - static_cast<float>(threshold())); }
  /// What an element is multiplied by: 0 or keep_scale().
  float factor(int64_t row, int64_t column, uint32_t head = 0) const {
    if (p == 0) return 1;
    if (of_samples) column = 0;
    const auto block = static_cast<uint32_t>(column / 128);
    const auto lane = static_cast<uint32_t>(column % 16);
    const auto slot = static_cast<uint32_t>(column % 128 / 16);
    const uint32_t at = of_samples ? 0 : position[row];
    const PhiloxCounter words = philox({block * 16 + lane, at, sample[row], head}, key);
    const uint32_t u = slot % 2 == 0 ? words[slot / 2] & 0xffffu : words[slot / 2] >> 16;
    return u < threshold() ? 0 : keep_scale();
  }
};

}  // namespace heddle
