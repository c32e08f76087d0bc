// Losses of boxes that a detector proposes, against those of the objects.
#pragma once

#include "heddle/autograd/tape.h"

namespace heddle {

// Rows are boxes: middle (x, y), width and height, by custom as shares of the image's edges. Pair
// by pair; the gradient goes to `boxes` alone. Sums are in double.

/// The absolute differences of the four numbers of each pair, summed up.
/// boxes, truths: [n, 4] f32    returns: [n] f32
/// Errors: shape for others.
Tensor box_l1(const Tensor& boxes, const Tensor& truths);

/// 1 - the generalised IoU of each pair: 0 of equal boxes, up to 2 far apart. Of a pair that covers
/// nothing at all it is 1, without a gradient.
/// boxes, truths: [n, 4] f32, widths and heights of at least 0    returns: [n] f32
/// Errors: shape for others.    Source: Rezatofighi et al. 2019, "Generalized Intersection over
/// Union".
Tensor generalized_iou_loss(const Tensor& boxes, const Tensor& truths);

}  // namespace heddle
