// Positions of a grid's cells by both coordinates: sines, or learned.
#pragma once

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

/// Of each cell of each grid, line by line, the vector of its column, and that of its row behind
/// it. columns, rows: [as many as the grids have, or more, width / 2]    returns: [cells of all
/// grids, width] of their dtype    Errors: data for a grid of more columns or rows than that.
Tensor cell_vectors(const Tensor& columns, const Tensor& rows, std::span<const ImageSize> grids);

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
