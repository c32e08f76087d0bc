// What pages ask of models whose attention runs inside windows.
#pragma once

#include <vector>

#include "heddle/tensor/image_size.h"

namespace heddle {

/// The windows of one attention over one image. Segment i of its AttentionCall is window i; the
/// images of a batch follow one another.
struct ImageWindows {
  ImageSize grid;     ///< of tokens, over the whole image
  int64_t side = 1;   ///< a window has side * side rows, line by line
  ImageSize windows;  ///< how many there are, below one another and side by side
  int64_t shift = 0;  ///< lines and columns that the windows begin later; 0: not shifted
  /// [windows * side * side] the token of the grid, line by line, that each row is; -1: padding
  std::vector<int32_t> tokens;
  /// [windows * side * side] a row sees those of its window that have its region;
  /// Visibility::kUnseen: padding that none sees. Padding with a region is seen, as others are
  std::vector<int32_t> regions;
};

class WithWindows {
 public:
  static constexpr const char* kAbility = "attends inside windows";

  virtual ~WithWindows() = default;
  /// Those of the attention that an observer is shown as attentions.LAYER. Errors: those of
  /// ImageModel::grid().
  virtual ImageWindows windows(int64_t layer, const ImageSize& image) const = 0;
};

}  // namespace heddle
