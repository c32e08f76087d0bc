// Learned positions of patches, on grids of any size.
#pragma once

#include <span>

#include "heddle/nn/parameters.h"
#include "heddle/nn/run.h"
#include "heddle/tensor/image_size.h"

namespace heddle::nn {

/// How the rows of a grid (line by line) are made of those of another: [to, from] f32, rows of sum
/// 1. By cubic convolution, centres at (i + 0.5) / size: with a = -0.75 and the border repeated,
/// what torch calls bicubic; or, antialiased, with a = -0.5, as wide as the coarser grid asks for,
/// and nothing beyond the border, as Pillow does. Source: Keys 1981.
Tensor bicubic_matrix(const ImageSize& from, const ImageSize& to, bool is_antialiased = false);

/// A vector for each patch of a grid, and for the tokens before them. Images with other grids get
/// vectors in between: as with interpolate_pos_encoding in transformers, or, antialiased, as with
/// dynamic_img_size in timm.
class GridPositions {
 public:
  /// table: [tokens + patches of the grid, width]
  GridPositions(Parameter& table, int64_t tokens, const ImageSize& grid,
                bool is_antialiased = false);

  const Parameter& table() const { return *table_; }
  const ImageSize& grid() const { return grid_; }
  /// The table of a model whose own grid is `grid`: [tokens + patches of it, width] f32, the
  /// vectors that images of that grid get here.
  Tensor table_of(const ImageSize& grid) const;

  /// dropout(x + positions). x: [rows, width], of each image its tokens, then the patches of its
  /// grid, line by line    returns: [rows, width]
  Tensor operator()(const Tensor& x, std::span<const ImageSize> grids, const DropoutSpec& spec,
                    const Run& run) const;

 private:
  Tensor between(const Tensor& table, const ImageSize& grid) const;
  Tensor table_with(std::span<const ImageSize> others, DType dtype) const;

  Parameter* table_;
  int64_t tokens_;
  ImageSize grid_;
  bool is_antialiased_;
};

}  // namespace heddle::nn
