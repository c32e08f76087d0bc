// Convolutions whose products read the pixels of windows where they lie: no patches in memory.
#pragma once

#include <span>

#include "heddle/ops/images/patches.h"

namespace heddle {

/// Whether convolution() with these options goes this way here: windows that overlap, or leave
/// pixels out.
bool convolves_directly(const WindowOptions& windows, DType dtype, const LinearOptions& options);

/// What convolution() computes, without its gradient. Nothing is checked or recorded. Where a line
/// of a window, kernel * in, is no multiple of 32, a pixel that is infinite or NaN also makes those
/// windows NaN that end up to 31 numbers before it.
/// x: [pixels of all images, in], w: [out, kernel * kernel * in]    y, written: [windows, out]
void direct_convolution(const Tensor& x, std::span<const ImageSize> sizes, const Tensor& w,
                        const Tensor& bias, const WindowOptions& windows,
                        const LinearOptions& options, const Tensor& y);

}  // namespace heddle
