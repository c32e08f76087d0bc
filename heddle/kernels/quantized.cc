// Rounding weights into groups and back: done once a model, or for a few rows of a table.
#include "heddle/kernels/quantized.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "heddle/base/parallel.h"

namespace heddle {
namespace {

constexpr int64_t kMostGroup = 64;
using Group = std::array<float, kMostGroup>;

// Where an element is: the byte of its value, and whether that is its upper half.
struct ElementPlace {
  int64_t byte, scale;
  bool is_upper;
};
ElementPlace place_of(const QuantizedRows& w, int64_t row, int64_t column) {
  const int64_t panel = row / w.kPanel, lane = row % w.kPanel;
  const int64_t group = panel * w.groups() + column / w.group;
  int64_t element = column % w.group;
  const bool is_upper = w.bits == 4 && element >= w.group / 2;
  if (is_upper) element -= w.group / 2;
  const int64_t byte = group * w.group_bytes() + (element / 4 * w.kPanel + lane) * 4 + element % 4;
  return {byte, group * w.kPanel + lane, is_upper};
}

// The scale above which bf16 has nothing closer.
float rounded_up(float scale) {
  bf16 up(scale);
  if (static_cast<float>(up) < scale) ++up.bits;
  return static_cast<float>(up);
}

float rounded(float x, float scale, float least, float most) {
  return std::clamp(std::nearbyint(x / scale), least, most);
}

// The scale of the least squared error: that which maps the element of the largest magnitude to
// -8, or one that clips or widens it, since a step for all others counts for more.
float scale_of_four_bits(const Group& x, int64_t n) {
  float farthest = 0;
  for (int64_t i = 0; i < n; ++i) {
    if (std::fabs(x[i]) > std::fabs(farthest)) farthest = x[i];
  }
  float best = 0, least = INFINITY;
  for (int step = 0; step <= 24 && farthest != 0; ++step) {
    const auto scale =
        static_cast<float>(bf16(farthest / (-9.0f + 0.125f * static_cast<float>(step))));
    float error = 0;
    for (int64_t i = 0; i < n; ++i) {
      const float off = x[i] - scale * rounded(x[i], scale, -8, 7);
      error += off * off;
    }
    if (error < least) least = error, best = scale;
  }
  return best;
}

float scale_of_eight_bits(const Group& x, int64_t n) {
  float largest = 0;
  for (int64_t i = 0; i < n; ++i) largest = std::max(largest, std::fabs(x[i]));
  return rounded_up(largest / 127);
}

void quantize_row(const float* x, int64_t row, const QuantizedRows& to) {
  auto* const values = const_cast<uint8_t*>(to.values);
  auto* const scales = const_cast<bf16*>(to.scales);
  const bool is_four = to.bits == 4;
  for (int64_t begin = 0; begin < to.width; begin += to.group) {
    const int64_t n = std::min(to.group, to.width - begin);
    Group group{};
    std::copy_n(x + begin, n, group.begin());
    const float scale =
        is_four ? scale_of_four_bits(group, to.group) : scale_of_eight_bits(group, to.group);
    scales[place_of(to, row, begin).scale] = bf16(scale);
    for (int64_t i = 0; i < to.group; ++i) {
      const float q =
          scale == 0 ? 0
                     : rounded(group[i], scale, is_four ? -8.0f : -127.0f, is_four ? 7.0f : 127.0f);
      const ElementPlace at = place_of(to, row, begin + i);
      if (is_four) {
        const int nibble = static_cast<int>(q) + 8;
        values[at.byte] |= static_cast<uint8_t>(at.is_upper ? nibble << 4 : nibble);
      } else {
        values[at.byte] = static_cast<uint8_t>(static_cast<int8_t>(q));
      }
    }
  }
}

}  // namespace

int QuantizedRows::value(int64_t row, int64_t column) const {
  const ElementPlace at = place_of(*this, row, column);
  const uint8_t byte = values[at.byte];
  return bits == 8 ? static_cast<int8_t>(byte) : (at.is_upper ? byte >> 4 : byte & 15) - 8;
}

float QuantizedRows::scale(int64_t row, int64_t column) const {
  return static_cast<float>(scales[place_of(*this, row, column).scale]);
}

void quantize(const Rows& w, const QuantizedRows& to) {
  parallel_for(to.panels(), [&](int64_t p) {
    auto* const values = const_cast<uint8_t*>(to.values) + p * to.panel_bytes();
    auto* const scales = const_cast<bf16*>(to.scales) + p * to.groups() * to.kPanel;
    std::memset(values, 0, static_cast<size_t>(to.panel_bytes()));
    std::fill_n(scales, to.groups() * to.kPanel, bf16());
    for (int64_t r = p * to.kPanel; r < (p + 1) * to.kPanel; ++r) {
      if (r < to.rows) {
        quantize_row(w.row<float>(r), r, to);
      } else if (to.bits == 4) {  // rows of zeros
        for (int64_t c = 0; c < to.groups() * to.group; ++c) {
          const ElementPlace at = place_of(to, r, c);
          const_cast<uint8_t*>(to.values)[at.byte] |= at.is_upper ? 0x80 : 0x08;
        }
      }
    }
  });
}

void dequantize(const QuantizedRows& w, std::span<const int32_t> ids, const Rows& y) {
  parallel_blocks(y.rows, 16, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      for (int64_t c = 0; c < w.width; ++c) y.row<float>(r)[c] = w.element(ids[r], c);
    }
  });
}

void dequantize(const QuantizedRows& w, const Rows& y) {
  parallel_blocks(y.rows, 16, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      for (int64_t c = 0; c < w.width; ++c) y.row<float>(r)[c] = w.element(r, c);
    }
  });
}

}  // namespace heddle
