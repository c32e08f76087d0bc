// Shapes: products, strides and how they are printed.
#include "heddle/tensor/shape.h"

#include <limits>

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
  bool is_too_large = false, is_empty = false;
  for (int i = 0; i < rank_; ++i) {
    is_too_large = __builtin_mul_overflow(n, sizes_[i], &n) || is_too_large;
    is_empty = is_empty || sizes_[i] == 0;
  }
  if (is_empty) return 0;
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max() / 16;  // in bytes it fits too
  check(!is_too_large && n <= kMost, ErrorKind::shape, "a tensor of shape {} has too many elements",
        *this);
  return n;
}

std::string Shape::str() const { return fmt::format("[{}]", fmt::join(sizes(), ", ")); }

}  // namespace heddle
