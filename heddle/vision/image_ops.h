// Basic operations on images, of which augmentation is made.
#pragma once

#include "heddle/vision/image.h"

namespace heddle {

/// What magnitudes mean is that of torchvision's AutoAugment: pixels for translate, degrees
/// (counterclockwise) for rotate, pixels per pixel for shear; what is added to a factor of 1 for
/// brightness, color (saturation), contrast and sharpness; bits that are kept for posterize; the
/// level from which on solarize inverts. The others have none.
enum class ImageOp : uint8_t {
  identity,
  shear_x,
  shear_y,
  translate_x,
  translate_y,
  rotate,
  brightness,
  color,
  contrast,
  sharpness,
  posterize,
  solarize,
  auto_contrast,
  equalize,
  invert
};

/// Applies an operation, to the bit as torchvision.transforms.functional does to an image of
/// Pillow's: geometry by the nearest pixel, `fill` where the image has none; shears keep the upper
/// left corner in its place, rotations the middle. A grey image (red = green = blue) stays grey.
/// Sources: torchvision 0.29, transforms/autoaugment.py; Pillow 13, ImageEnhance, ImageOps, and
/// libImaging's Blend.c, Filter.c, Geometry.c. (Where C's floating point differs, by fused
/// multiplications for one, a level may be off by one.)
void apply(Image& image, ImageOp op, double magnitude, Rgb fill = {});

/// The part that the box covers; `fill` where the image has no pixel.
Image crop(const Image& image, const PixelBox& box, Rgb fill = {});

/// Left and right change places.
void flip_columns(Image& image);

/// Top and bottom change places.
void flip_rows(Image& image);

/// Rows become columns: the pixel at (x, y) goes to (y, x).
Image transposed(const Image& image);

/// Paints the part that the box covers.
void paint(Image& image, const PixelBox& box, Rgb color);

}  // namespace heddle
