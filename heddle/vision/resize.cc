// Resampling along one axis at a time with weights in fixed point.
#include "heddle/vision/resize.h"

#include <algorithm>
#include <cmath>

#include "heddle/base/error.h"

namespace heddle {
namespace {

// Bits of a weight behind the point: 8 of a pixel and 2 for sums above one are kept free.
constexpr int kPointBits = 32 - 8 - 2;

double weight_at(Resample filter, double x) {
  x = std::abs(x);
  if (filter == Resample::bilinear) return std::max(0.0, 1 - x);
  constexpr double a = -0.5;
  if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  if (x < 2) return (((x - 5) * x + 8) * x - 4) * a;
  return 0;
}

// Which pixels a place mixes: `count` from `first` on, with weights from `at` in Mix::weights.
struct Taps {
  int64_t first, count, at;
};

// How an axis of `from` pixels becomes one of `to`.
struct Mix {
  std::vector<Taps> taps;
  std::vector<int32_t> weights;

  Mix(int64_t from, int64_t to, Resample filter) {
    const double scale = static_cast<double>(from) / static_cast<double>(to);
    const double spread = std::max(scale, 1.0);
    const double support = (filter == Resample::bilinear ? 1.0 : 2.0) * spread;
    std::vector<double> exact;
    for (int64_t place = 0; place < to; ++place) {
      const double center = (static_cast<double>(place) + 0.5) * scale;
      const auto first = std::max<int64_t>(0, static_cast<int64_t>(center - support + 0.5));
      const auto end = std::min<int64_t>(from, static_cast<int64_t>(center + support + 0.5));
      exact.clear();
      double sum = 0;
      for (int64_t x = first; x < end; ++x) {
        exact.push_back(weight_at(filter, (static_cast<double>(x) - center + 0.5) * (1 / spread)));
        sum += exact.back();
      }
      taps.push_back({first, end - first, static_cast<int64_t>(weights.size())});
      for (double w : exact) {
        if (sum != 0) w /= sum;
        weights.push_back(static_cast<int32_t>((w < 0 ? -0.5 : 0.5) + w * (1 << kPointBits)));
      }
    }
  }
};

constexpr int32_t kHalf = 1 << (kPointBits - 1);

uint8_t rounded(int32_t sum) {
  return static_cast<uint8_t>(std::clamp(sum >> kPointBits, 0, 0xff));
}

void mix_row(const uint8_t* from, const Mix& mix, uint8_t* to) {
  for (const Taps& taps : mix.taps) {
    int32_t red = kHalf, green = kHalf, blue = kHalf;
    const int32_t* weight = mix.weights.data() + taps.at;
    const uint8_t* pixel = from + 3 * taps.first;
    for (int64_t i = 0; i < taps.count; ++i, pixel += 3) {
      red += pixel[0] * weight[i];
      green += pixel[1] * weight[i];
      blue += pixel[2] * weight[i];
    }
    *to++ = rounded(red);
    *to++ = rounded(green);
    *to++ = rounded(blue);
  }
}

Image mix_columns(const Image& image, int64_t height, Resample filter) {
  const Mix mix(image.height, height, filter);
  Image result(height, image.width);
  const int64_t bytes = image.row_bytes();
  std::vector<int32_t> sums(static_cast<size_t>(bytes));
  for (int64_t y = 0; y < height; ++y) {
    const Taps& taps = mix.taps[y];
    std::fill(sums.begin(), sums.end(), kHalf);
    for (int64_t i = 0; i < taps.count; ++i) {
      const uint8_t* row = image.row(taps.first + i);
      const int32_t weight = mix.weights[taps.at + i];
      for (int64_t x = 0; x < bytes; ++x) sums[x] += row[x] * weight;
    }
    std::transform(sums.begin(), sums.end(), result.row(y), rounded);
  }
  return result;
}

Image mix_rows(const Image& image, int64_t width, Resample filter) {
  const Mix mix(image.width, width, filter);
  Image result(image.height, width);
  for (int64_t y = 0; y < image.height; ++y) mix_row(image.row(y), mix, result.row(y));
  return result;
}

}  // namespace

Image resize(const Image& image, int64_t height, int64_t width, Resample filter) {
  check(height > 0 && width > 0 && width <= kMostPixels / height, ErrorKind::usage,
        "resize: a size of {} x {} pixels (width x height) is asked for; it has one at least, and "
        "{} at most",
        width, height, kMostPixels);
  const auto mixed = [&](const Image& from, bool is_rows) {
    if (is_rows) return from.width == width ? from : mix_rows(from, width, filter);
    return from.height == height ? from : mix_columns(from, height, filter);
  };
  // Where it saves work: the height loses more than twice the pixels that the width does.
  const bool is_height_first =
      image.height - height > 2 * std::max<int64_t>(0, image.width - width);
  return mixed(mixed(image, !is_height_first), is_height_first);
}

}  // namespace heddle
