// Windows over the pixels of images, which lie end to end without padding, each row by row.
#pragma once

#include <span>
#include <vector>

#include "heddle/autograd/tape.h"
#include "heddle/kernels/patches.h"
#include "heddle/ops/matmul.h"

namespace heddle {

/// How many windows there are over an image: what a convolution or a pool makes of it.
/// Errors: shape if there is none, or the options are none (kernel and stride of at least 1).
ImageSize output_size(const ImageSize& size, const WindowOptions& options);
/// The same of each image.
std::vector<ImageSize> output_sizes(std::span<const ImageSize> sizes, const WindowOptions& options);
/// Pixels, or windows, of all images. Errors: shape if a side is negative.
int64_t area(std::span<const ImageSize> sizes);

/// The pixels of each window side by side, zeros where it lies in the padding: what a convolution
/// multiplies with its weights.
/// x: [pixels of all images, channels], f32 or bf16    returns: [windows of all images, kernel *
/// kernel * channels] of the dtype of x, in the order row and column of the window, channel; x
/// itself where a window is a pixel. Errors: shape if sizes do not fit; those of output_size().
Tensor patch_rows(const Tensor& x, std::span<const ImageSize> sizes, const WindowOptions& options);

/// linear(patch_rows(x), w, bias): a convolution. Block of images by block, so that patches are in
/// the cache when they are multiplied and none are kept: the gradient makes them again.
/// x: [pixels of all images, channels], w: [out, kernel * kernel * channels] of its dtype, bias:
/// [out] f32 or undefined    returns: [windows of all images, out]
/// In bf16, where it is faster, 3 x 3 windows of a weight that is no constant go by Winograd's
/// tiles (winograd.h), with or without a gradient: a layer that is computed again has the same
/// bits. Errors: shape if sizes do not fit; those of linear() and output_size().
Tensor convolution(const Tensor& x, std::span<const ImageSize> sizes, const Tensor& w,
                   const Tensor& bias, const WindowOptions& windows,
                   const LinearOptions& options = {});

/// The largest value of each channel in each window; the gradient goes to the first of equals, of
/// those in the padding to none.
/// x: [pixels of all images, channels], f32 or bf16    returns: [windows of all images, channels]
/// Errors: shape if sizes do not fit, the kernel is above 15 or the padding not below it; those of
/// output_size().
Tensor max_pool(const Tensor& x, std::span<const ImageSize> sizes, const WindowOptions& options);

}  // namespace heddle
