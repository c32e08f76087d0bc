// Parts of a parameter, in memory and in files.
#pragma once

#include <algorithm>

#include "heddle/nn/parameters.h"

namespace heddle::nn {

/// Of a part in memory; see file_shape().
inline Shape part_shape(const Parameter& p, const Part& part) {
  Shape shape = p.shape();
  shape[0] = part.rows;
  return shape;
}

/// Of a part as the checkpoint holds it.
inline Shape file_shape(const Parameter& p, const Part& part) {
  if (p.kind() == ParameterKind::counter) return {};
  if (!part.file_shape.empty()) return Shape(part.file_shape);
  Shape shape = part_shape(p, part);
  if (part.layout == Layout::transposed) std::swap(shape[0], shape[1]);
  return shape;
}

/// Where a part begins in the values or the gradient of its parameter.
inline float* part_values(const Tensor& whole, const Part& part) {
  const int64_t row = whole.elements() / std::max<int64_t>(1, whole.size(0));
  return whole.data<float>() + part.begin * row;
}

}  // namespace heddle::nn
