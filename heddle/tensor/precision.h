// Which number formats to compute in.
#pragma once

#include "heddle/tensor/dtype.h"

namespace heddle {

/// The number formats of a forward pass.
struct Precision {
  DType compute = DType::f32;  ///< of activations; of products too, unless they are in int8
  bool int8 = false;           ///< products with weights, where no gradient is wanted

  Precision(DType c = DType::f32, bool i = false) : compute(c), int8(i) {}  // NOLINT: of a dtype
  /// Bytes of a weight in a product.
  int64_t weight_bytes() const { return int8 ? 1 : size_of(compute); }
  friend bool operator==(const Precision&, const Precision&) = default;
};

}  // namespace heddle
