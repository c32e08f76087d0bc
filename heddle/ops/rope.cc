// The rotation, and its gradient: the rotation back.
#include "heddle/ops/rope.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "heddle/base/parallel.h"
#include "heddle/kernels/family.h"

namespace heddle {
namespace {

// Turns row x into y, back if `is_back`. turns: [d] cosines, then sines
template <class T>
void turn(const T* x, T* y, const RopeOptions& o, int64_t width, const float* turns, bool is_back) {
  const int64_t half = o.head_width / 2;
  const float sign = is_back ? -1.0f : 1.0f;
  for (int64_t begin = 0; begin < o.columns; begin += o.head_width) {
    for (int64_t j = begin; j < begin + half; ++j) {
      const auto a = static_cast<float>(x[j]), b = static_cast<float>(x[j + half]);
      const float c = turns[j - begin], s = sign * turns[half + j - begin];
      y[j] = static_cast<T>(a * c - b * s);
      y[j + half] = static_cast<T>(a * s + b * c);
    }
  }
  for (int64_t j = o.columns; j < width; ++j) y[j] = x[j];
}

Tensor turned(const Tensor& x, std::span<const int32_t> positions, const RopeOptions& o,
              bool is_back) {
  Tensor y = empty_like(x);
  const Rows from = x.rows(), to = y.rows();
  if (is_counting()) {
    count_work({bytes_of(from) + bytes_of(to), 0});
    return y;
  }
  visit_float(x.dtype(), [&]<class T>() {
    parallel_blocks(from.rows, 64, [&](int64_t begin, int64_t end) {
      std::vector<float> own(o.head_width);
      for (int64_t r = begin; r < end; ++r) {
        const float* turns = o.table->row(positions[r], own.data());
        turn(from.row<T>(r), to.row<T>(r), o, from.width, turns, is_back);
      }
    });
  });
  return y;
}

}  // namespace

RopeTable::RopeTable(std::vector<double> frequencies, int64_t positions)
    : frequencies_(std::move(frequencies)), positions_(positions), rows_(positions * 2 * pairs()) {
  for (int64_t p = 0; p < positions; ++p) compute(p, rows_.data() + p * 2 * pairs());
}

const float* RopeTable::row(int64_t position, float* own) const {
  if (position >= 0 && position < positions_) return rows_.data() + position * 2 * pairs();
  compute(position, own);
  return own;
}

void RopeTable::compute(int64_t position, float* to) const {
  for (int64_t j = 0; j < pairs(); ++j) {
    const double angle = static_cast<double>(position) * frequencies_[j];
    to[j] = static_cast<float>(std::cos(angle));
    to[pairs() + j] = static_cast<float>(std::sin(angle));
  }
}

std::vector<double> rope_frequencies(int64_t head_width, double theta) {
  std::vector<double> frequencies;
  for (int64_t j = 0; j < head_width / 2; ++j) {
    frequencies.push_back(
        std::pow(theta, -2.0 * static_cast<double>(j) / static_cast<double>(head_width)));
  }
  return frequencies;
}

std::vector<double> rope_frequencies(int64_t head_width, int64_t positions,
                                     const RotaryOptions& o) {
  const auto original = static_cast<double>(o.original_positions.value_or(positions));
  std::vector<double> frequencies = rope_frequencies(head_width, o.theta);
  for (double& f : frequencies) {
    double share = o.type == "linear" ? 1 : 0;  // of the slow form in the blend
    if (o.type == "llama3") {
      const double waves = original * f / (2 * std::numbers::pi);
      share = 1 - std::clamp((waves - o.low_freq_factor) / (o.high_freq_factor - o.low_freq_factor),
                             0.0, 1.0);
    }
    f = (1 - share) * f + share * f / o.factor;
  }
  return frequencies;
}

std::shared_ptr<const RopeTable> rotary_table(int64_t head_width, int64_t positions,
                                              const RotaryOptions& options) {
  check(head_width % 2 == 0, ErrorKind::shape,
        "rotary positions need heads of an even width, not {}; they turn pairs", head_width);
  constexpr int64_t kMostPositions = 4096;  // further ones are computed when they come
  return std::make_shared<const RopeTable>(rope_frequencies(head_width, positions, options),
                                           std::min(positions, kMostPositions));
}

Tensor rope(const Tensor& x, std::span<const int32_t> positions, const RopeOptions& o) {
  check(x.rank() == 2 && x.size(0) == static_cast<int64_t>(positions.size()), ErrorKind::shape,
        "rope: x is {}, with {} positions; each row needs one", x.shape(), positions.size());
  check(o.head_width >= 2 && o.head_width % 2 == 0 && o.columns % o.head_width == 0 &&
            o.columns <= x.size(1),
        ErrorKind::shape, "rope: {} columns of {} in heads of {}; heads must be even and whole",
        o.columns, x.shape(), o.head_width);
  check(o.table != nullptr, ErrorKind::internal, "rope: no table is given");
  check(2 * o.table->pairs() == o.head_width, ErrorKind::shape,
        "rope: the table has {} pairs; heads of {} need half as many", o.table->pairs(),
        o.head_width);
  const Tensor y = turned(x, positions, o, false);
  if (!needs_record({&x})) return y;
  const auto kept =
      std::make_shared<const std::vector<int32_t>>(positions.begin(), positions.end());
  return record("rope", {x}, y,
                [kept, o](const Tensor& dy) -> Grads { return {turned(dy, *kept, o, true)}; });
}

}  // namespace heddle
