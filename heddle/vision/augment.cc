// Each step has random numbers of its own: one step more changes nothing in the others.
#include "heddle/vision/augment.h"

#include <algorithm>
#include <cmath>

#include "heddle/base/error.h"
#include "heddle/vision/image_ops.h"
#include "heddle/vision/policies.h"

namespace heddle {
namespace {

constexpr int kTries = 10;

// Height and width of about an area; `ratio` of the one to the other is drawn on a log scale, so
// that lying and standing parts are as likely.
ImageSize draw_part(double area, double ratio_low, double ratio_high, RngStream& random) {
  const double ratio = std::exp(random.between(std::log(ratio_low), std::log(ratio_high)));
  return {std::llrint(std::sqrt(area * ratio)), std::llrint(std::sqrt(area / ratio))};
}

Image resized(const Image& image, const AugmentTarget& target) {
  if (image.size() == target.size) return image;
  return resize(image, target.size.height, target.size.width, target.resample);
}

void apply_policy(Image& image, const Augmentation& how, RngStream random) {
  if (how.auto_augment == "rand_augment") {
    rand_augment(image, how.rand_augment_count, how.rand_augment_magnitude, how.fill(), random);
  } else if (how.auto_augment == "cifar10") {
    cifar10_augment(image, how.fill(), random);
  } else if (how.auto_augment == "trivial") {
    trivial_augment(image, how.fill(), random);
  }
}

void erase(Image& image, const Augmentation& how, RngStream random) {
  if (!random.happens(how.random_erasing)) return;
  if (const auto box = draw_erased(image.size(), random)) paint(image, *box, how.fill());
}

// A part of the image's size out of it and a margin around it.
Image shifted(const Image& image, const Augmentation& how, RngStream random) {
  const int64_t margin = how.random_crop;
  const ImageSize padded = {image.height + 2 * margin, image.width + 2 * margin};
  PixelBox box = draw_place(padded, image.size(), random);
  box.top -= margin;
  box.left -= margin;
  return crop(image, box, how.fill());
}

}  // namespace

void Augmentation::check(const std::string& source) const {
  heddle::check(augment_fill.size() == 3, ErrorKind::usage,
                "{}: `augment_fill` has {} numbers; red, green and blue are needed", source,
                augment_fill.size());
}

Rgb Augmentation::fill() const {
  Rgb color;
  std::transform(augment_fill.begin(), augment_fill.end(), color.begin(),
                 [](int64_t level) { return static_cast<uint8_t>(level); });
  return color;
}

RngStream AugmentDraw::stream(std::string_view purpose) const {
  return RngStream(make_key(seed, epoch, hash_name(purpose), sample));
}

// Torchvision's ColorJitter without hue.
void jitter_colors(Image& image, double strength, RngStream& random) {
  std::vector<ImageOp> ops = {ImageOp::brightness, ImageOp::contrast, ImageOp::color};
  shuffle_values(ops, random);
  for (const ImageOp op : ops) {
    apply(image, op, random.between(std::max(-1.0, -strength), strength));
  }
}

PixelBox draw_place(ImageSize whole, ImageSize part, RngStream& random) {
  const int64_t top = random.index(whole.height - part.height + 1);
  return {top, random.index(whole.width - part.width + 1), part.height, part.width};
}

PixelBox draw_crop(ImageSize size, double share, RngStream& random) {
  constexpr double low = 3.0 / 4, high = 4.0 / 3;
  const auto height = static_cast<double>(size.height), width = static_cast<double>(size.width);
  for (int i = 0; i < kTries; ++i) {
    const double area = height * width * random.between(share, 1);
    const ImageSize part = draw_part(area, low, high, random);
    const bool is_inside =
        part.height > 0 && part.height <= size.height && part.width > 0 && part.width <= size.width;
    if (is_inside) return draw_place(size, part, random);
  }
  ImageSize part = size;
  if (width / height < low) part.height = std::llrint(width / low);
  if (width / height > high) part.width = std::llrint(height * high);
  return {(size.height - part.height) / 2, (size.width - part.width) / 2, part.height, part.width};
}

std::optional<PixelBox> draw_erased(ImageSize size, RngStream& random) {
  const auto area = static_cast<double>(size.height * size.width);
  for (int i = 0; i < kTries; ++i) {
    const double erased = area * random.between(0.02, 0.33);
    const ImageSize part = draw_part(erased, 0.3, 3.3, random);
    const bool is_inside = part.height < size.height && part.width < size.width;
    if (is_inside) return draw_place(size, part, random);
  }
  return std::nullopt;
}

Image augment(const Image& image, const Augmentation& how, const AugmentTarget& target,
              const AugmentDraw& draw) {
  Image result;
  if (how.random_resized_crop > 0) {
    RngStream random = draw.stream("augment/random_resized_crop");
    result = resized(crop(image, draw_crop(image.size(), how.random_resized_crop, random)), target);
  } else {
    result = resized(image, target);
  }
  if (how.random_crop > 0) result = shifted(result, how, draw.stream("augment/random_crop"));
  if (how.flip && draw.stream("augment/flip").below(2) == 1) flip_columns(result);
  if (how.color_jitter > 0) {
    RngStream random = draw.stream("augment/color_jitter");
    jitter_colors(result, how.color_jitter, random);
  }
  if (how.auto_augment != "none") apply_policy(result, how, draw.stream("augment/auto_augment"));
  if (how.random_erasing > 0) erase(result, how, draw.stream("augment/random_erasing"));
  return result;
}

}  // namespace heddle
