// RandAugment, TrivialAugment and AutoAugment's policy for CIFAR-10.
#include "heddle/vision/policies.h"

#include <cmath>

namespace heddle {
namespace {

double spread(double first, double last, int64_t level, int64_t levels) {
  return first + (last - first) * static_cast<double>(level) / static_cast<double>(levels - 1);
}

// The greatest magnitude; the least is 0.
double reach(ImageOp op, bool is_wide, ImageSize size) {
  switch (op) {
    case ImageOp::shear_x:
    case ImageOp::shear_y: return is_wide ? 0.99 : 0.3;
    case ImageOp::translate_x:
      return is_wide ? 32 : 150.0 / 331.0 * static_cast<double>(size.width);
    case ImageOp::translate_y:
      return is_wide ? 32 : 150.0 / 331.0 * static_cast<double>(size.height);
    case ImageOp::rotate: return is_wide ? 135 : 30;
    case ImageOp::brightness:
    case ImageOp::color:
    case ImageOp::contrast:
    case ImageOp::sharpness: return is_wide ? 0.99 : 0.9;
    default: return 0;
  }
}

void apply_signed(Image& image, ImageOp op, double magnitude, Rgb fill, RngStream& random) {
  const bool is_negative = is_signed(op) && random.below(2) == 1;
  apply(image, op, is_negative ? -magnitude : magnitude, fill);
}

// The first of ImageOp, whose last is invert.
constexpr uint64_t kDrawnOps = static_cast<uint64_t>(ImageOp::invert);

ImageOp draw_op(RngStream& random) { return static_cast<ImageOp>(random.below(kDrawnOps)); }

}  // namespace

double magnitude_at(ImageOp op, int64_t level, MagnitudeScale scale, ImageSize size) {
  if (op == ImageOp::solarize) return spread(255, 0, level, scale.levels);
  if (op == ImageOp::posterize) {
    return 8 - std::nearbyint(spread(0, scale.is_wide ? 6 : 4, level, scale.levels));
  }
  return spread(0, reach(op, scale.is_wide, size), level, scale.levels);
}

bool is_signed(ImageOp op) { return op >= ImageOp::shear_x && op <= ImageOp::sharpness; }

void rand_augment(Image& image, int64_t count, int64_t level, Rgb fill, RngStream& random) {
  for (int64_t i = 0; i < count; ++i) {
    const ImageOp op = draw_op(random);
    apply_signed(image, op, magnitude_at(op, level, {}, image.size()), fill, random);
  }
}

void trivial_augment(Image& image, Rgb fill, RngStream& random) {
  constexpr MagnitudeScale scale = {.is_wide = true};
  const ImageOp op = draw_op(random);
  const auto level = random.index(scale.levels);
  apply_signed(image, op, magnitude_at(op, level, scale, image.size()), fill, random);
}

const CifarPolicy& cifar10_policy() {
  using enum ImageOp;
  static constexpr CifarPolicy policy = {{
      {{{invert, 0.1, -1}, {contrast, 0.2, 6}}},
      {{{rotate, 0.7, 2}, {translate_x, 0.3, 9}}},
      {{{sharpness, 0.8, 1}, {sharpness, 0.9, 3}}},
      {{{shear_y, 0.5, 8}, {translate_y, 0.7, 9}}},
      {{{auto_contrast, 0.5, -1}, {equalize, 0.9, -1}}},
      {{{shear_y, 0.2, 7}, {posterize, 0.3, 7}}},
      {{{color, 0.4, 3}, {brightness, 0.6, 7}}},
      {{{sharpness, 0.3, 9}, {brightness, 0.7, 9}}},
      {{{equalize, 0.6, -1}, {equalize, 0.5, -1}}},
      {{{contrast, 0.6, 7}, {sharpness, 0.6, 5}}},
      {{{color, 0.7, 7}, {translate_x, 0.5, 8}}},
      {{{equalize, 0.3, -1}, {auto_contrast, 0.4, -1}}},
      {{{translate_y, 0.4, 3}, {sharpness, 0.2, 6}}},
      {{{brightness, 0.9, 6}, {color, 0.2, 8}}},
      {{{solarize, 0.5, 2}, {invert, 0.0, -1}}},
      {{{equalize, 0.2, -1}, {auto_contrast, 0.6, -1}}},
      {{{equalize, 0.2, -1}, {equalize, 0.6, -1}}},
      {{{color, 0.9, 9}, {equalize, 0.6, -1}}},
      {{{auto_contrast, 0.8, -1}, {solarize, 0.2, 8}}},
      {{{brightness, 0.1, 3}, {color, 0.7, 0}}},
      {{{solarize, 0.4, 5}, {auto_contrast, 0.9, -1}}},
      {{{translate_y, 0.9, 9}, {translate_y, 0.7, 9}}},
      {{{auto_contrast, 0.9, -1}, {solarize, 0.8, 3}}},
      {{{equalize, 0.8, -1}, {invert, 0.1, -1}}},
      {{{translate_y, 0.7, 9}, {auto_contrast, 0.9, -1}}},
  }};
  return policy;
}

void cifar10_augment(Image& image, Rgb fill, RngStream& random) {
  const CifarPolicy& policy = cifar10_policy();
  for (const PolicyStep& step : policy[random.below(policy.size())]) {
    if (!random.happens(step.probability)) continue;
    const double magnitude =
        step.level < 0 ? 0 : magnitude_at(step.op, step.level, {.levels = 10}, image.size());
    apply_signed(image, step.op, magnitude, fill, random);
  }
}

}  // namespace heddle
