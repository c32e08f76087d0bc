// Shapes: products, strides and how they are printed.
#include "heddle/tensor/shape.h"

#include "heddle/base/error.h"

namespace heddle {

Shape::Shape(std::span<const int64_t> sizes) : rank_(static_cast<int>(sizes.size())) {
  check(sizes.size() <= kMaxRank, ErrorKind::shape, "a tensor has at most {} axes, not {}",
        kMaxRank, sizes.size());
  for (int i = 0; i < rank_; ++i) {
    check(sizes[i] >= 0, ErrorKind::shape, "axis {} has the negative size {}", i, sizes[i]);
    sizes_[i] = sizes[i];
  }
}

void Shape::refuse(int axis) const {
  fail(ErrorKind::shape, "there is no axis {} in shape {}", axis, *this);
}

int64_t Shape::elements() const {
  int64_t n = 1;
  for (int i = 0; i < rank_; ++i) n *= sizes_[i];
  return n;
}

std::string Shape::str() const { return fmt::format("[{}]", fmt::join(sizes(), ", ")); }

}  // namespace heddle
