// Parts of images; geometry in fixed point, tables of levels, and blending with a plainer image.
#include "heddle/vision/image_ops.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <numbers>

#include "heddle/base/rounded.h"

namespace heddle {
namespace {

// --- geometry ---

// Where a pixel comes from: x' = xx x + xy y + x0, y' = yx x + yy y + y0, of middles of pixels.
struct Affine {
  double xx = 1, xy = 0, x0 = 0, yx = 0, yy = 1, y0 = 0;
};

// Steps are rounded to 2^-16 of a pixel, as Pillow does, and summed up exactly.
int64_t fixed(double v) { return static_cast<int64_t>(std::floor(v * 65536 + 0.5)); }

void transform(Image& image, const Affine& a, Rgb fill) {
  const Image from = image;
  const int64_t step_xx = fixed(a.xx), step_yx = fixed(a.yx), step_xy = fixed(a.xy),
                step_yy = fixed(a.yy);
  int64_t row_x = fixed(a.x0 + a.xx * 0.5 + a.xy * 0.5),
          row_y = fixed(a.y0 + a.yx * 0.5 + a.yy * 0.5);
  for (int64_t y = 0; y < image.height; ++y, row_x += step_xy, row_y += step_yy) {
    uint8_t* to = image.row(y);
    int64_t at_x = row_x, at_y = row_y;
    for (int64_t x = 0; x < image.width; ++x, at_x += step_xx, at_y += step_yx, to += 3) {
      const int64_t from_x = at_x >> 16, from_y = at_y >> 16;
      const bool is_inside =
          from_x >= 0 && from_x < from.width && from_y >= 0 && from_y < from.height;
      std::memcpy(to, is_inside ? from.row(from_y) + 3 * from_x : fill.data(), 3);
    }
  }
}

// The tangent of the angle with this tangent, on the way through degrees that torchvision takes:
// its last bit may differ.
double shear_step(double magnitude) {
  const double degrees = std::atan(magnitude) * (180 / std::numbers::pi);
  return std::tan(degrees * (std::numbers::pi / 180));
}

// Pillow rounds sine and cosine to 15 digits, so that right angles are exact.
Affine rotation(const Image& image, double degrees) {
  const double turn = std::fmod(std::fmod(degrees, 360) + 360, 360);
  const double angle = -turn * (std::numbers::pi / 180), cosine = rounded(std::cos(angle), 15),
               sine = rounded(std::sin(angle), 15), x = static_cast<double>(image.width) / 2,
               y = static_cast<double>(image.height) / 2;
  return {.xx = cosine,
          .xy = sine,
          .x0 = cosine * -x + sine * -y + x,
          .yx = -sine,
          .yy = cosine,
          .y0 = -sine * -x + cosine * -y + y};
}

// --- tables: what a level becomes, whatever its place ---

using Levels = std::array<uint8_t, 256>;

template <class F>
Levels levels_of(const F& f) {
  Levels levels;
  for (int i = 0; i < 256; ++i) levels[i] = static_cast<uint8_t>(f(i));
  return levels;
}

void look_up(Image& image, const std::array<Levels, 3>& tables) {
  for (size_t i = 0; i < image.pixels.size(); i += 3) {
    for (size_t c = 0; c < 3; ++c) image.pixels[i + c] = tables[c][image.pixels[i + c]];
  }
}

void look_up(Image& image, const Levels& levels) {
  for (uint8_t& value : image.pixels) value = levels[value];
}

using Histogram = std::array<int64_t, 256>;

std::array<Histogram, 3> histograms(const Image& image) {
  std::array<Histogram, 3> counts = {};
  for (size_t i = 0; i < image.pixels.size(); i += 3) {
    for (size_t c = 0; c < 3; ++c) ++counts[c][image.pixels[i + c]];
  }
  return counts;
}

Levels as_they_are() {
  return levels_of([](int i) { return i; });
}

// The darkest level becomes 0, the lightest 255.
Levels stretched(const Histogram& counts) {
  int low = 0, high = 255;
  while (counts[low] == 0) ++low;
  while (counts[high] == 0) --high;
  if (high <= low) return as_they_are();
  const double scale = 255.0 / (high - low), offset = -low * scale;
  return levels_of([&](int i) { return std::clamp(static_cast<int>(i * scale + offset), 0, 255); });
}

// As many pixels on each level, as nearly as whole levels allow.
Levels equalized(const Histogram& counts) {
  int64_t pixels = 0, last = 0;
  int used = 0;
  for (const int64_t count : counts) {
    pixels += count;
    if (count > 0) last = count;
    used += count > 0;
  }
  const int64_t step = (pixels - last) / 255;
  if (used <= 1 || step == 0) return as_they_are();
  int64_t sum = step / 2;
  return levels_of([&](int i) {
    const int64_t level = sum / step;
    sum += counts[i];
    return std::min<int64_t>(level, 255);
  });
}

template <class F>
void look_up_by_channel(Image& image, const F& table_of) {
  const std::array<Histogram, 3> counts = histograms(image);
  look_up(image, {table_of(counts[0]), table_of(counts[1]), table_of(counts[2])});
}

// --- blending: a factor of 0 gives the plainer image, of 1 the image, beyond it more than that ---

uint8_t blended(int plain, int level, float factor) {
  const float value = static_cast<float>(plain) + factor * static_cast<float>(level - plain);
  return static_cast<uint8_t>(std::clamp(value, 0.0f, 255.0f));
}

int grey(const uint8_t* rgb) {  // ITU-R 601-2
  return (rgb[0] * 19595 + rgb[1] * 38470 + rgb[2] * 7471 + 0x8000) >> 16;
}

void blend_with_level(Image& image, int plain, float factor) {
  look_up(image, levels_of([&](int i) { return blended(plain, i, factor); }));
}

int mean_grey(const Image& image) {
  int64_t sum = 0;
  for (size_t i = 0; i < image.pixels.size(); i += 3) sum += grey(image.pixels.data() + i);
  return static_cast<int>(static_cast<double>(sum) / static_cast<double>(image.pixels.size() / 3) +
                          0.5);
}

void blend_with_grey(Image& image, float factor) {
  for (size_t i = 0; i < image.pixels.size(); i += 3) {
    uint8_t* rgb = image.pixels.data() + i;
    const int plain = grey(rgb);
    for (int c = 0; c < 3; ++c) rgb[c] = blended(plain, rgb[c], factor);
  }
}

// Smooth is (the eight around + 5 times itself) / 13; pixels at the edge stay as they are.
void blend_with_smooth(Image& image, float factor) {
  const Image from = image;
  const int64_t row = image.row_bytes();
  for (int64_t y = 1; y + 1 < image.height; ++y) {
    const uint8_t* at = from.row(y);
    uint8_t* to = image.row(y);
    for (int64_t x = 3; x + 3 < row; ++x) {
      const uint8_t *middle = at + x, *above = middle - row, *below = middle + row;
      const int sum = above[-3] + above[0] + above[3] + middle[-3] + 5 * middle[0] + middle[3] +
                      below[-3] + below[0] + below[3];
      to[x] = blended((2 * sum + 13) / 26, middle[0], factor);
    }
  }
}

}  // namespace

void apply(Image& image, ImageOp op, double magnitude, Rgb fill) {
  const auto factor = static_cast<float>(1 + magnitude);
  const auto pixels = static_cast<double>(static_cast<int64_t>(magnitude));
  switch (op) {
    case ImageOp::identity: return;
    case ImageOp::shear_x: return transform(image, {.xy = shear_step(magnitude)}, fill);
    case ImageOp::shear_y: return transform(image, {.yx = shear_step(magnitude)}, fill);
    case ImageOp::translate_x: return transform(image, {.x0 = -pixels}, fill);
    case ImageOp::translate_y: return transform(image, {.y0 = -pixels}, fill);
    case ImageOp::rotate: return transform(image, rotation(image, magnitude), fill);
    case ImageOp::brightness: return blend_with_level(image, 0, factor);
    case ImageOp::color: return blend_with_grey(image, factor);
    case ImageOp::contrast: return blend_with_level(image, mean_grey(image), factor);
    case ImageOp::sharpness: return blend_with_smooth(image, factor);
    case ImageOp::posterize: {
      const int mask = ~((1 << (8 - static_cast<int>(magnitude))) - 1);
      return look_up(image, levels_of([&](int i) { return i & mask; }));
    }
    case ImageOp::solarize:
      return look_up(image, levels_of([&](int i) { return i < magnitude ? i : 255 - i; }));
    case ImageOp::auto_contrast: return look_up_by_channel(image, stretched);
    case ImageOp::equalize: return look_up_by_channel(image, equalized);
    case ImageOp::invert: return look_up(image, levels_of([](int i) { return 255 - i; }));
  }
}

Image crop(const Image& image, const PixelBox& box, Rgb fill) {
  Image result(box.height, box.width);
  const int64_t begin = std::clamp<int64_t>(box.left, 0, image.width),
                end = std::clamp<int64_t>(box.left + box.width, begin, image.width);
  const int64_t first = std::max<int64_t>(0, -box.top),
                last = std::min(box.height, image.height - box.top);
  const bool is_inside =
      begin == box.left && end == box.left + box.width && first == 0 && last == box.height;
  if (!is_inside && fill != Rgb{}) paint(result, {0, 0, box.height, box.width}, fill);
  for (int64_t y = first; y < last && end > begin; ++y) {
    std::memcpy(result.row(y) + 3 * (begin - box.left), image.row(box.top + y) + 3 * begin,
                static_cast<size_t>(3 * (end - begin)));
  }
  return result;
}

void flip_columns(Image& image) {
  for (int64_t y = 0; y < image.height; ++y) {
    uint8_t* row = image.row(y);
    for (int64_t left = 0, right = image.width - 1; left < right; ++left, --right) {
      std::swap_ranges(row + 3 * left, row + 3 * left + 3, row + 3 * right);
    }
  }
}

void flip_rows(Image& image) {
  for (int64_t top = 0, bottom = image.height - 1; top < bottom; ++top, --bottom) {
    std::swap_ranges(image.row(top), image.row(top) + image.row_bytes(), image.row(bottom));
  }
}

Image transposed(const Image& image) {
  Image result(image.width, image.height);
  for (int64_t y = 0; y < image.height; ++y) {
    const uint8_t* row = image.row(y);
    for (int64_t x = 0; x < image.width; ++x) std::memcpy(result.row(x) + 3 * y, row + 3 * x, 3);
  }
  return result;
}

void paint(Image& image, const PixelBox& box, Rgb color) {
  const int64_t left = std::max<int64_t>(0, box.left),
                right = std::min(image.width, box.left + box.width);
  for (int64_t y = std::max<int64_t>(0, box.top); y < std::min(image.height, box.top + box.height);
       ++y) {
    for (int64_t x = left; x < right; ++x) std::memcpy(image.row(y) + 3 * x, color.data(), 3);
  }
}

}  // namespace heddle
