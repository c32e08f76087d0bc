// Making tensors and viewing them.
#include "heddle/tensor/tensor.h"

#include <cstring>

#include "heddle/tensor/convert.h"

namespace heddle {
namespace {

// Of a shape without elements any will do, and products of its axes may overflow.
std::array<int64_t, Shape::kMaxRank> row_major(const Shape& shape) {
  std::array<int64_t, Shape::kMaxRank> strides{};
  strides.fill(1);
  if (shape.elements() == 0) return strides;
  int64_t step = 1;
  for (int axis = shape.rank() - 1; axis >= 0; --axis) {
    strides[axis] = step;
    step *= shape[axis];
  }
  return strides;
}

}  // namespace

Tensor Tensor::empty(const Shape& shape, DType dtype) {
  const int64_t elements = shape.elements();  // refuses what strides would overflow of
  Tensor t;
  t.shape_ = shape;
  t.strides_ = row_major(shape);
  t.dtype_ = dtype;
  t.storage_ = Storage::allocate(elements * size_of(dtype));
  return t;
}

Tensor Tensor::zeros(const Shape& shape, DType dtype) {
  Tensor t = empty(shape, dtype);
  if (UntouchedMemory::is_used()) return t;
  std::memset(t.raw(), 0, t.elements() * size_of(dtype));
  return t;
}

Tensor Tensor::full(const Shape& shape, float value, DType dtype) {
  Tensor t = empty(shape, dtype);
  visit_float(dtype, [&]<class T>() { std::fill_n(t.data<T>(), t.elements(), T(value)); });
  return t;
}

Tensor Tensor::view_of(std::shared_ptr<Storage> storage, int64_t offset_bytes, const Shape& shape,
                       DType dtype) {
  check(offset_bytes % size_of(dtype) == 0 &&
            offset_bytes + shape.elements() * size_of(dtype) <= storage->bytes(),
        ErrorKind::internal, "a view of {} {} at byte {} does not fit into {} bytes", shape,
        dtype_name(dtype), offset_bytes, storage->bytes());
  Tensor t;
  t.shape_ = shape;
  t.strides_ = row_major(shape);
  t.dtype_ = dtype;
  t.offset_ = offset_bytes / size_of(dtype);
  t.storage_ = std::move(storage);
  return t;
}

void Tensor::refuse_undefined() {
  fail(ErrorKind::shape,
       "a tensor that holds nothing was read; if it is a gradient, none has come yet");
}

bool Tensor::contiguous() const {
  if (elements() == 0) return true;
  int64_t step = 1;
  for (int axis = rank() - 1; axis >= 0; --axis) {
    if (shape_[axis] != 1 && strides_[axis] != step) return false;
    step *= shape_[axis];
  }
  return true;
}

Rows Tensor::rows() const {
  if (rank() == 0) return {raw(), 1, 1, 1, dtype_};
  const int last = rank() - 1;
  const int64_t width = shape_[last];
  check(strides_[last] == 1 || width <= 1, ErrorKind::shape,
        "a tensor of shape {} has strided columns; make it contiguous first", shape_);
  if (rank() == 1) return {raw(), 1, width, width, dtype_};
  int64_t rows = 1, stride = 0;
  for (int axis = last - 1; axis >= 0; --axis) {
    if (shape_[axis] == 1) continue;
    if (rows == 1) {
      stride = strides_[axis];
    } else {
      check(strides_[axis] == stride * rows || elements() == 0, ErrorKind::shape,
            "the rows of a tensor of shape {} are not evenly spaced", shape_);
    }
    rows *= shape_[axis];
  }
  return {raw(), rows, width, stride == 0 ? width : stride, dtype_};
}

Tensor Tensor::view(const Shape& shape) const {
  check(shape.elements() == elements(), ErrorKind::shape,
        "a tensor of shape {} cannot be seen as {}", shape_, shape);
  check(contiguous(), ErrorKind::shape,
        "a tensor of shape {} that is not contiguous cannot be seen as {}; clone it first", shape_,
        shape);
  Tensor t = detached();
  t.shape_ = shape;
  t.strides_ = row_major(shape);
  return t;
}

Tensor Tensor::slice(int axis, int64_t begin, int64_t count) const {
  const int64_t n = size(axis);
  check(begin >= 0 && count >= 0 && count <= n - begin, ErrorKind::shape,
        "a slice of {} from {} on is outside axis {} of shape {}", count, begin, axis, shape_);
  if (axis < 0) axis += rank();
  Tensor t = detached();
  t.shape_[axis] = count;
  t.offset_ += begin * strides_[axis];
  return t;
}

Tensor Tensor::transposed(int axis_a, int axis_b) const {
  if (axis_a < 0) axis_a += rank();
  if (axis_b < 0) axis_b += rank();
  check(axis_a >= 0 && axis_a < rank() && axis_b >= 0 && axis_b < rank(), ErrorKind::shape,
        "transposed: shape {} has no axes {} and {}", shape_, axis_a, axis_b);
  Tensor t = detached();
  std::swap(t.shape_[axis_a], t.shape_[axis_b]);
  std::swap(t.strides_[axis_a], t.strides_[axis_b]);
  return t;
}

Tensor Tensor::to_contiguous() const { return contiguous() ? detached() : clone(); }

Tensor Tensor::clone() const {
  Tensor t = empty(shape_, dtype_);
  copy_to(t);
  return t;
}

void Tensor::copy_to(const Tensor& y) const {
  check(y.shape_ == shape_ && y.dtype_ == dtype_, ErrorKind::shape, "copy of {} {} to {} {}",
        shape_, dtype_name(dtype_), y.shape_, dtype_name(y.dtype_));
  if (UntouchedMemory::is_used() || elements() == 0) return;
  const int64_t bytes = size_of(dtype_);
  auto* out = static_cast<char*>(y.raw());
  const auto* in = static_cast<const char*>(raw());
  if (contiguous() && y.contiguous()) {
    std::memcpy(out, in, elements() * bytes);
    return;
  }
  const int last = rank() - 1;
  const bool are_runs = strides_[last] == 1 && y.strides_[last] == 1;
  const int64_t run = are_runs ? shape_[last] : 1;  // elements side by side in both
  std::array<int64_t, Shape::kMaxRank> at{};
  for (int64_t i = 0; i < elements(); i += run) {
    int64_t from = 0, to = 0;
    for (int axis = 0; axis <= last; ++axis) {
      from += at[axis] * strides_[axis];
      to += at[axis] * y.strides_[axis];
    }
    std::memcpy(out + to * bytes, in + from * bytes, run * bytes);
    int axis = last;
    for (at[axis] += run; axis > 0 && at[axis] == shape_[axis]; ++at[axis]) at[axis--] = 0;
  }
}

std::vector<float> Tensor::to_floats() const {
  const Tensor t = to_contiguous();
  std::vector<float> values(t.elements());
  convert_to_floats(t.raw(), dtype_, values);
  return values;
}

float Tensor::item() const {
  check(elements() == 1, ErrorKind::shape, "item() of a tensor of shape {}; it needs one element",
        shape_);
  return to_floats()[0];
}

Tensor Tensor::with_place(TapePlace place) const {
  Tensor t = *this;
  t.place_ = place;
  t.leaf_ = nullptr;
  return t;
}

Tensor Tensor::with_leaf(Leaf* leaf) const {
  Tensor t = *this;
  t.leaf_ = leaf;
  t.place_ = {};
  return t;
}

Tensor Tensor::detached() const { return with_place({}); }

Tensor empty_like(const Tensor& x) { return Tensor::empty(x.shape(), x.dtype()); }
Tensor empty_like(const Tensor& x, DType dtype) { return Tensor::empty(x.shape(), dtype); }

}  // namespace heddle
