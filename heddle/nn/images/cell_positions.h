// Positions of a grid's cells by both coordinates: sines, or learned.
#pragma once

#include <array>
#include <span>

#include "heddle/nn/parameters.h"
#include "heddle/tensor/image_size.h"

namespace heddle::nn {

/// Of each cell of each grid, line by line: the sines and cosines, side by side
/// in pairs, of y and then of x, which run from 2 pi / cells to 2 pi, at
/// frequencies 10000^(-4i/width). returns: [cells of all grids, width] f32,
/// computed in f64    Errors: shape unless 4 divides width.    Source: Carion
/// et al. 2020 (DETR), models/position_encoding.py; Vaswani et al. 2017.
Tensor sine_positions(std::span<const ImageSize> grids, int64_t width);

/// Of each box (four numbers of 0 to 1) the sines and cosines of each number times 2 pi, side by
/// side in pairs, at frequencies 20^(-4i/width). returns: [boxes, 2 width] f32, computed in f64
/// Errors: shape unless 4 divides width.    Source: Liu et al. 2022 (DAB-DETR), section 4.2.
Tensor box_sines(std::span<const std::array<float, 4>> boxes, int64_t width);

/// A learned vector of each column, and one of each row behind it: DETR's other
/// positions. Names: row_embeddings.weight, column_embeddings.weight, both
/// [kMost, width / 2].
class RowColumnPositions {
 public:
  static constexpr int64_t kMost = 50;
  RowColumnPositions(const Scope& s, int64_t width, const Init& init);

  /// returns: [cells of all grids, width] of that dtype    Errors: data for a
  /// grid of more rows or columns than there are vectors.
  Tensor operator()(std::span<const ImageSize> grids, DType dtype) const;

 private:
  Parameter *rows_, *columns_;
};

}  // namespace heddle::nn
