// The tokens of images with their axes swapped: what mixes tokens reads a channel a row.
#pragma once

#include "heddle/autograd/tape.h"

namespace heddle {

/// Each image's matrix of `height` rows with its axes swapped: of tokens, a row for each channel;
/// and, where `height` is the number of channels, back again.
/// x: [images * height, width], f32 or bf16    returns: [images * width, height] of that dtype
/// Errors: shape if x holds no whole number of images.
Tensor channel_rows(const Tensor& x, int64_t height);

}  // namespace heddle
