// A loss of classes that asks of a detector how well its boxes lie.
#pragma once

#include <span>

#include "heddle/autograd/tape.h"

namespace heddle {

/// The matchability-aware loss of each row, summed over its classes, each of which has p = 1 / (1 +
/// e^-logit): of the one that is its object's -q^g log p - (1 - q^g) log(1 - p), where q is the
/// overlap (IoU) of its box with the object's and g = 1.5; of the others -p^g log(1 - p).
/// logits: [rows, classes] f32; labels: [rows], -1 where a row has no object; overlaps: [rows], 0
/// to 1, constants    returns: [rows] f32, computed in f64 Errors: shape if sizes do not fit; data
/// for a label that is no class. The gradient is that of this formula; the authors' code takes the
/// factor p^g as a constant. Source: Huang et al. 2024, "DEIM: DETR with Improved Matching for Fast
/// Convergence" (arXiv 2412.04234), section 3.3.
Tensor matchability_loss(const Tensor& logits, std::span<const int32_t> labels,
                         std::span<const float> overlaps);

/// That of one row, in f64.
double matchability_of_row(std::span<const float> logits, int32_t label, double overlap);

}  // namespace heddle
