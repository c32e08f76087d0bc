// MixUp and CutMix on pixels as they enter a model.
#include "heddle/vision/mixing.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

#include "heddle/base/error.h"
#include "heddle/base/parallel.h"

namespace heddle {
namespace {

// In (0, 1], so that it has a logarithm.
double open_uniform(RngStream& random) { return 1 - static_cast<double>(random.uniform()); }

double normal(RngStream& random) {  // Box and Muller 1958
  const double radius = std::sqrt(-2 * std::log(open_uniform(random)));
  return radius * std::cos(2 * std::numbers::pi * static_cast<double>(random.uniform()));
}

// The logarithm of a number from Gamma(shape): for a small shape the number itself would be 0.
double draw_log_gamma(double shape, RngStream& random) {
  if (shape < 1) {
    const double larger = draw_log_gamma(shape + 1, random);
    return larger + std::log(open_uniform(random)) / shape;
  }
  const double d = shape - 1.0 / 3, c = 1 / std::sqrt(9 * d);
  for (;;) {
    const double x = normal(random), root = 1 + c * x;
    if (root <= 0) continue;
    const double v = root * root * root;
    if (std::log(open_uniform(random)) < x * x / 2 + d - d * v + d * std::log(v)) {
      return std::log(d * v);
    }
  }
}

int64_t place(double share, int64_t length) {
  return std::min(length - 1, static_cast<int64_t>(share * static_cast<double>(length)));
}

// Two images of one size, and where their pixels begin.
struct ImagePair {
  size_t first, second;
  int64_t first_pixel, second_pixel;
};

std::vector<ImagePair> pairs_of(std::span<const ImageSize> sizes) {
  std::vector<std::pair<ImageSize, std::vector<size_t>>> groups;
  std::vector<int64_t> begins;
  int64_t begin = 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    begins.push_back(begin);
    begin += sizes[i].height * sizes[i].width;
    const auto group =
        std::ranges::find_if(groups, [&](const auto& g) { return g.first == sizes[i]; });
    if (group != groups.end()) {
      group->second.push_back(i);
    } else {
      groups.push_back({sizes[i], {i}});
    }
  }
  std::vector<ImagePair> pairs;
  for (const auto& [size, images] : groups) {
    for (size_t i = 0; i < images.size() / 2; ++i) {
      const size_t first = images[i], second = images[images.size() - 1 - i];
      pairs.push_back({first, second, begins[first], begins[second]});
    }
  }
  return pairs;
}

void blend_both(std::span<float> first, std::span<float> second, float share) {
  for (size_t i = 0; i < first.size(); ++i) {
    const float a = first[i], b = second[i];
    first[i] = share * a + (1 - share) * b;
    second[i] = share * b + (1 - share) * a;
  }
}

void swap_box(const MixedBatch& batch, const ImagePair& pair, const PixelBox& box, int64_t width) {
  for (int64_t y = box.top; y < box.top + box.height; ++y) {
    const int64_t at = y * width + box.left, count = box.width * batch.channels;
    const auto first = batch.pixels.begin() + (pair.first_pixel + at) * batch.channels;
    const auto second = batch.pixels.begin() + (pair.second_pixel + at) * batch.channels;
    std::swap_ranges(first, first + count, second);
  }
}

void check_lengths(const MixedBatch& batch) {
  int64_t pixels = 0;
  for (const ImageSize& size : batch.sizes) pixels += size.height * size.width;
  check(std::ssize(batch.pixels) == pixels * batch.channels, ErrorKind::shape,
        "mix: {} values of pixels; {} pixels of {} channels need {}", batch.pixels.size(), pixels,
        batch.channels, pixels * batch.channels);
  const int64_t targets = std::ssize(batch.sizes) * batch.classes;
  check(std::ssize(batch.targets) == targets, ErrorKind::shape,
        "mix: {} weights of classes; {} images of {} classes need {}", batch.targets.size(),
        batch.sizes.size(), batch.classes, targets);
}

}  // namespace

PixelBox Mixing::box(ImageSize size) const {
  const double edge = std::sqrt(1 - share);
  const auto span = [&](double middle, int64_t length) {
    const auto half = static_cast<int64_t>(edge * static_cast<double>(length)) / 2;
    const int64_t at = place(middle, length);
    return std::pair(std::max<int64_t>(0, at - half), std::min(length, at + half));
  };
  const auto [top, bottom] = span(row, size.height);
  const auto [left, right] = span(column, size.width);
  return {top, left, bottom - top, right - left};
}

double Mixing::kept(ImageSize size) const {
  if (kind == Kind::none) return 1;
  if (kind == Kind::mixup) return share;
  const PixelBox part = box(size);
  return 1 - static_cast<double>(part.height * part.width) /
                 static_cast<double>(size.height * size.width);
}

Mixing draw_mixing(const Augmentation& how, RngKey key) {
  RngStream random(key);
  const bool has_mixup = how.mixup_alpha > 0, has_cutmix = how.cutmix_alpha > 0;
  const bool is_mixed = random.happens(how.mix_probability);
  if (!is_mixed || (!has_mixup && !has_cutmix)) return {};
  const bool is_cutmix = has_cutmix && (!has_mixup || random.below(2) == 1);
  Mixing result;
  result.kind = is_cutmix ? Mixing::Kind::cutmix : Mixing::Kind::mixup;
  result.share = draw_beta(is_cutmix ? how.cutmix_alpha : how.mixup_alpha, random);
  result.row = static_cast<double>(random.uniform());
  result.column = static_cast<double>(random.uniform());
  return result;
}

void mix(const Mixing& how, const MixedBatch& batch) {
  check_lengths(batch);
  if (how.kind == Mixing::Kind::none) return;
  const std::vector<ImagePair> pairs = pairs_of(batch.sizes);
  parallel_for(std::ssize(pairs), [&](int64_t i) {
    const ImagePair& pair = pairs[static_cast<size_t>(i)];
    const ImageSize size = batch.sizes[pair.first];
    const auto values = static_cast<size_t>(size.height * size.width * batch.channels);
    const auto pixels = [&](int64_t begin) {
      return batch.pixels.subspan(static_cast<size_t>(begin * batch.channels), values);
    };
    if (how.kind == Mixing::Kind::mixup) {
      blend_both(pixels(pair.first_pixel), pixels(pair.second_pixel),
                 static_cast<float>(how.share));
    } else {
      swap_box(batch, pair, how.box(size), size.width);
    }
    const auto classes = static_cast<size_t>(batch.classes);
    blend_both(batch.targets.subspan(pair.first * classes, classes),
               batch.targets.subspan(pair.second * classes, classes),
               static_cast<float>(how.kept(size)));
  });
}

// Of the first half, or its larger part, a stretch, then those that it is mirrored in.
std::vector<std::vector<int64_t>> split_for_mixing(std::span<const int64_t> samples,
                                                   int64_t parts) {
  const int64_t n = std::ssize(samples), half = (n + 1) / 2, count = std::min(parts, half);
  std::vector<std::vector<int64_t>> out;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t begin = i * half / count, end = (i + 1) * half / count;
    std::vector<int64_t>& part = out.emplace_back(samples.begin() + begin, samples.begin() + end);
    part.insert(part.end(), samples.begin() + std::max(end, n - end), samples.end() - begin);
  }
  return out;
}

double draw_beta(double alpha, RngStream& random) {
  alpha = std::max(alpha, 1e-6);  // there 0 or 1 already, below it logarithms overflow
  const double first = draw_log_gamma(alpha, random), second = draw_log_gamma(alpha, random);
  return 1 / (1 + std::exp(second - first));
}

}  // namespace heddle
