// The sizes of a tensor, outermost first.
#pragma once

#include <fmt/core.h>

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

namespace heddle {

/// Up to kMaxRank sizes. Prints as [2, 3].
class Shape {
 public:
  static constexpr int kMaxRank = 6;

  Shape() = default;
  Shape(std::initializer_list<int64_t> sizes) : Shape(std::span(sizes.begin(), sizes.size())) {}
  explicit Shape(std::span<const int64_t> sizes);

  int rank() const { return rank_; }
  /// Size of an axis; negative axes count from the end. Errors: shape if there is no such axis.
  int64_t operator[](int axis) const { return sizes_[resolve(axis)]; }
  int64_t& operator[](int axis) { return sizes_[resolve(axis)]; }
  /// Product of all sizes (1 for a scalar).
  int64_t elements() const;
  std::span<const int64_t> sizes() const { return {sizes_.data(), static_cast<size_t>(rank_)}; }
  std::string str() const;
  friend bool operator==(const Shape&, const Shape&) = default;

 private:
  size_t resolve(int axis) const {
    const int at = axis < 0 ? axis + rank_ : axis;
    if (at < 0 || at >= rank_) [[unlikely]]
      refuse(axis);
    return static_cast<size_t>(at);
  }
  [[noreturn]] void refuse(int axis) const;
  int rank_ = 0;
  std::array<int64_t, kMaxRank> sizes_{};  // 0 beyond the rank
};

}  // namespace heddle

/// Lets messages take a shape as it is: its text is made only if the message is.
template <>
struct fmt::formatter<heddle::Shape> : fmt::formatter<std::string> {
  template <class Context>
  auto format(const heddle::Shape& shape, Context& context) const {
    return fmt::formatter<std::string>::format(shape.str(), context);
  }
};
