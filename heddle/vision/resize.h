// Images of another size.
#pragma once

#include "heddle/vision/image.h"

namespace heddle {

/// How a pixel is mixed from those around its place: over 2 (bilinear) or 4 (bicubic, a = -1/2)
/// pixels of the smaller of the two images, so that an image that shrinks loses no detail to
/// chance. The numbers are Pillow's, which preprocessor_config.json has as "resample".
enum class Resample : uint8_t { bilinear = 2, bicubic = 3 };

/// The image scaled to [height, width], to the bit as Image.resize() of Pillow 13 gives it: first
/// along the rows, then along the columns, each in fixed point and rounded to 8 bits; the other way
/// round where the height loses more than twice the pixels that the width does (before Pillow 13
/// never: such an image differs by one level here and there).
/// Errors: usage for a size below 1 or of more than kMostPixels.
Image resize(const Image& image, int64_t height, int64_t width, Resample filter);

}  // namespace heddle
