// Positions of a grid's cells by sines of both coordinates.
#pragma once

#include <span>

#include "heddle/tensor/image_size.h"
#include "heddle/tensor/tensor.h"

namespace heddle::nn {

/// Of each cell of each grid, line by line: the sines and cosines, side by side in pairs, of y and
/// then of x, which run from 2 pi / cells to 2 pi, at frequencies 10000^(-4i/width).
/// returns: [cells of all grids, width] f32, computed in f64    Errors: shape unless 4 divides
/// width.    Source: Carion et al. 2020 (DETR), models/position_encoding.py; Vaswani et al. 2017.
Tensor sine_positions(std::span<const ImageSize> grids, int64_t width);

}  // namespace heddle::nn
