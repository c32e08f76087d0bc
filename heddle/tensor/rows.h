// Row views: what a kernel sees of a tensor.
#pragma once

#include "heddle/tensor/dtype.h"

namespace heddle {

/// A matrix whose rows are contiguous: row i starts at data + i * stride elements.
struct Rows {
  void* data = nullptr;
  int64_t rows = 0;
  int64_t width = 0;
  int64_t stride = 0;  ///< elements from one row to the next, >= width
  DType dtype = DType::f32;

  template <class T>
  T* row(int64_t i) const {
    return static_cast<T*>(data) + i * stride;
  }
  /// Columns [begin, begin + count).
  Rows columns(int64_t begin, int64_t count) const {
    return {static_cast<char*>(data) + begin * size_of(dtype), rows, count, stride, dtype};
  }
  /// Rows [begin, begin + count).
  Rows slice(int64_t begin, int64_t count) const {
    return {static_cast<char*>(data) + begin * stride * size_of(dtype), count, width, stride,
            dtype};
  }
  bool contiguous() const { return stride == width || rows <= 1; }
};

}  // namespace heddle
