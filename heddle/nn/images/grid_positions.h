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

/// What a table of positions holds a vector for.
enum class PositionsOf : uint8_t {
  cells,  ///< each cell, and each token before them: [tokens + cells, width]
  axes    ///< each column, then each row: [columns + rows, width / 2]; see cell_vectors()
};

/// A vector for each patch of a grid, and for the tokens before them: learned as such, or made of
/// its column's and its row's (Dosovitskiy et al. 2021, appendix D.4), where tokens get none.
/// Images with other grids get vectors in between: as with interpolate_pos_encoding in
/// transformers, or, antialiased, as with dynamic_img_size in timm.
class GridPositions {
 public:
  struct Options {
    int64_t tokens = 0;  ///< before the patches
    bool is_antialiased = false;
    PositionsOf of = PositionsOf::cells;
  };
  GridPositions(Parameter& table, const ImageSize& grid, const Options& options);

  const Parameter& table() const { return *table_; }
  const ImageSize& grid() const { return grid_; }
  PositionsOf of() const { return o_.of; }
  /// The table of a model whose own grid is `grid`, f32: the vectors that images of that grid get
  /// here.
  Tensor table_of(const ImageSize& grid) const;
  /// What is added to the rows of an image of the own grid: [tokens + patches, width] f32.
  Tensor vectors() const;

  /// dropout(x + positions). x: [rows, width], of each image its tokens, then the patches of its
  /// grid, line by line    returns: [rows, width]
  Tensor operator()(const Tensor& x, std::span<const ImageSize> grids, const DropoutSpec& spec,
                    const Run& run) const;

 private:
  struct Axes {
    Tensor columns, rows;
  };
  Axes axes(const Tensor& table, const ImageSize& grid) const;
  Tensor of_cells(const Tensor& table, const ImageSize& grid) const;
  Tensor with_tokens(const Tensor& table) const;
  Tensor table_with(std::span<const ImageSize> others, DType dtype) const;

  Parameter* table_;
  ImageSize grid_;
  Options o_;
};

}  // namespace heddle::nn
