// What a model with segment memory keeps of the tokens before: hidden states.
#pragma once

#include <vector>

#include "heddle/tensor/segments.h"
#include "heddle/tensor/tensor.h"

namespace heddle::nn {

/// States of the tokens before those of a pass, which attention sees beside them and no gradient
/// enters. Source: Dai et al. 2019, "Transformer-XL", section 3.2.
struct Memory {
  Segments segments;           ///< tokens kept of each sequence
  std::vector<Tensor> layers;  ///< [rows, width] what entered layer i

  /// What a pass over `tokens` sees before them: `given`, or n zero rows each if it is null or
  /// empty. Errors: shape if `given` is of other sequences or layers.
  static Memory before(const Memory* given, const Segments& tokens, int64_t n, int64_t layers,
                       int64_t width, DType dtype);
  /// What is kept of a pass for the next.
  struct Keep {
    int64_t most = 0;   ///< the last so many rows of a sequence, older ones counted
    int64_t reuse = 0;  ///< of the new ones only the first so many; 0: all
  };
  /// What the next pass is to see: of each sequence what was kept, then x (what entered layer i for
  /// `tokens`). Errors: shape if sizes do not fit.
  Memory next(const std::vector<Tensor>& x, const Segments& tokens, const Keep& keep) const;
};

}  // namespace heddle::nn
