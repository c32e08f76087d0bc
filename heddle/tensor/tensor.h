// A strided view of typed memory; the value that ops take and give.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "heddle/base/error.h"
#include "heddle/tensor/dtype.h"
#include "heddle/tensor/rows.h"
#include "heddle/tensor/shape.h"
#include "heddle/tensor/storage.h"

namespace heddle {

struct Leaf;  // a place where a gradient ends (heddle/autograd/tape.h)

/// A tensor's place in the tape: output `slot` of step `step`; step -1: not on the tape.
struct TapePlace {
  int64_t step = -1;
  int32_t slot = 0;
};

/// A view of elements in shared memory. Copying copies the view, never the elements.
class Tensor {
 public:
  Tensor() = default;

  /// Uninitialised. Errors: system when out of memory.
  static Tensor empty(const Shape& shape, DType dtype);
  static Tensor zeros(const Shape& shape, DType dtype);
  static Tensor full(const Shape& shape, float value, DType dtype = DType::f32);
  /// A copy of values, in row-major order. Errors: shape if the count differs.
  template <class T>
  static Tensor from(std::span<const T> values, const Shape& shape) {
    check(static_cast<int64_t>(values.size()) == shape.elements(), ErrorKind::shape,
          "{} values do not fill the shape {}", values.size(), shape);
    Tensor t = empty(shape, dtype_of<T>);
    std::copy(values.begin(), values.end(), t.data<T>());
    return t;
  }
  template <class T>
  static Tensor from(const std::vector<T>& values, const Shape& shape) {
    return from(std::span<const T>(values), shape);
  }
  /// A contiguous view of memory that `storage` keeps alive.
  static Tensor view_of(std::shared_ptr<Storage> storage, int64_t offset_bytes, const Shape& shape,
                        DType dtype);

  bool defined() const { return storage_ != nullptr; }
  const Shape& shape() const { return shape_; }
  int rank() const { return shape_.rank(); }
  int64_t size(int axis) const { return shape_[axis]; }
  int64_t elements() const { return shape_.elements(); }
  DType dtype() const { return dtype_; }
  bool contiguous() const;

  /// First element. Errors: internal if T is not the tensor's dtype.
  template <class T>
  T* data() const {
    check(dtype_of<T> == dtype_, ErrorKind::internal, "a {} tensor was read as {}",
          dtype_name(dtype_), dtype_name(dtype_of<T>));
    return static_cast<T*>(raw());
  }
  /// Errors: shape unless defined().
  void* raw() const {
    if (storage_ == nullptr) [[unlikely]]
      refuse_undefined();
    return static_cast<char*>(storage_->data()) + offset_ * size_of(dtype_);
  }
  const std::shared_ptr<Storage>& storage() const { return storage_; }
  /// Whether nobody else sees its elements: no other tensor, no file.
  bool is_only_view() const {
    return storage_ != nullptr && storage_.use_count() == 1 && !storage_->is_borrowed();
  }

  /// All axes but the last flattened to rows. Errors: shape if the strides do not allow it.
  Rows rows() const;

  // Views without a place on the tape; the ops of the same names record them.
  Tensor view(const Shape& shape) const;  ///< Errors: shape unless contiguous
  Tensor slice(int axis, int64_t begin, int64_t count) const;
  Tensor transposed(int axis_a, int axis_b) const;

  /// A contiguous copy (or the tensor itself) without a place on the tape.
  Tensor to_contiguous() const;
  /// A contiguous copy of its own memory.
  Tensor clone() const;
  /// Writes the elements to those of y, a view of other memory of the same shape and dtype.
  void copy_to(const Tensor& y) const;
  /// All elements as float, row-major. Any dtype that heddle reads.
  std::vector<float> to_floats() const;
  /// The only element of a one-element tensor, as float.
  float item() const;

  const TapePlace& place() const { return place_; }
  Leaf* leaf() const { return leaf_; }
  Tensor with_place(TapePlace place) const;
  Tensor with_leaf(Leaf* leaf) const;
  /// The same elements, cut off from the tape.
  Tensor detached() const;

 private:
  [[noreturn]] static void refuse_undefined();

  std::shared_ptr<Storage> storage_;
  Shape shape_;
  std::array<int64_t, Shape::kMaxRank> strides_{};
  int64_t offset_ = 0;  // elements
  DType dtype_ = DType::f32;
  TapePlace place_;
  Leaf* leaf_ = nullptr;
};

/// Uninitialised, of the same shape (and dtype unless another is given).
Tensor empty_like(const Tensor& x);
Tensor empty_like(const Tensor& x, DType dtype);

}  // namespace heddle
