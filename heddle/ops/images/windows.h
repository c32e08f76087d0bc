// Rows of grids in another order: windows, shifted or not, and neighbours to be merged.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "heddle/autograd/tape.h"
#include "heddle/ops/visibility.h"
#include "heddle/tensor/image_size.h"

namespace heddle {

/// Rows in another order, with zeros between them.
struct RowOrder {
  std::vector<int32_t> from;  ///< [rows in that order] the row that stands there; -1: zeros
  std::vector<int32_t> to;    ///< [rows] where each stands; each stands once

  /// The order in which rows stand at these places. Errors: shape for a place from `rows` on.
  static std::shared_ptr<const RowOrder> of(std::vector<int32_t> from, int64_t rows);
};
/// y[i] = x[from[i]], or zeros. x: [rows, width]    returns: [rows in that order, width]
/// Errors: shape if the rows are of another number.
Tensor reorder(const Tensor& x, const std::shared_ptr<const RowOrder>& order);
/// The way back: y[r] = x[to[r]].
Tensor restore(const Tensor& x, const std::shared_ptr<const RowOrder>& order);

/// Square windows over grids of tokens. Source: Liu et al. 2021, "Swin Transformer", section 3.2.
struct WindowRule {
  int64_t side = 1;
  /// Windows begin so many lines and columns later; the first ones stand behind the last ones.
  int64_t shift = 0;
  /// A side of a grid that is shorter than a window makes windows of its length; a grid that has
  /// such a side, or one as long as a window, is not shifted. Else windows reach beyond the grid.
  bool clamps = true;
};

/// Where the tokens of grids that lie end to end stand in windows. All windows have side * side
/// rows, line by line; grid after grid, the windows of a grid line by line. A grid that windows do
/// not fill is padded below and on the right: with rows of zeros, which are seen as others are, or,
/// where windows are clamped, with rows that are not seen.
struct GridWindows {
  std::shared_ptr<const RowOrder> order;
  Segments segments;            ///< the windows
  std::vector<int32_t> counts;  ///< windows of each grid
  /// [rows of the windows] A token sees those of its window that have its region; kUnseen: none
  /// does.
  std::vector<int32_t> regions;
  std::shared_ptr<const Visibility> visibility;  ///< the same; null: all of a window see all
};
/// Errors: shape unless a window has a side of 1 or more, and a shift of 0 or more.
GridWindows windows_of(std::span<const ImageSize> grids, const WindowRule& rule);

/// Grids of half the height and width, rounded up.
std::vector<ImageSize> merged_sizes(std::span<const ImageSize> grids);
/// The four neighbours of which a token of merged_sizes() is made, one behind the other: above
/// left, below left, above right, below right; zeros where a grid has none. As in the code of Liu
/// et al. 2021.
std::shared_ptr<const RowOrder> neighbours_of(std::span<const ImageSize> grids);

/// Images padded with zeros below and on the right until `multiple` divides height and width.
struct PaddedGrids {
  std::vector<ImageSize> sizes;
  std::shared_ptr<const RowOrder> order;  ///< null: nothing is to be padded
};
/// Errors: shape unless `multiple` is 1 or more.
PaddedGrids padded_to(std::span<const ImageSize> grids, int64_t multiple);

}  // namespace heddle
