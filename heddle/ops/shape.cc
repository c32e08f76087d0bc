// Views where the strides allow, copies where not, and their gradients.
#include "heddle/ops/shape.h"

#include "heddle/kernels/kernels.h"

namespace heddle {
namespace {

// Copies x into the view y of the same shape and dtype.
void copy_into(const Tensor& x, const Tensor& y) {
  if (is_counting()) return count_work({2 * size_of(x.dtype()) * x.elements(), 0});
  x.copy_to(y);
}

// Calls f(begin in the whole, begin in the part, rows) for the segments of one of two parts that
// stand by turns.
template <class F>
void for_parts(const Segments& first, const Segments& second, bool is_second, const F& f) {
  const Segments& part = is_second ? second : first;
  for (int64_t i = 0; i < part.count(); ++i) {
    if (part.length(i) == 0) continue;
    const int64_t before = first.begin(i) + second.begin(i);
    f(is_second ? before + first.length(i) : before, part.begin(i), part.length(i));
  }
}

}  // namespace

Tensor reshape(const Tensor& x, const Shape& shape) {
  const Shape before = x.shape();
  return record("reshape", {x}, x.view(shape),
                [before](const Tensor& dy) -> Grads { return {dy.to_contiguous().view(before)}; });
}

Tensor slice(const Tensor& x, int axis, int64_t begin, int64_t count) {
  if (axis < 0) axis += x.rank();
  const Shape whole = x.shape();
  return record("slice", {x}, x.slice(axis, begin, count),
                [whole, axis, begin, count](const Tensor& dy) -> Grads {
                  Tensor dx = Tensor::zeros(whole, dy.dtype());
                  copy_into(dy, dx.slice(axis, begin, count));
                  return {dx};
                });
}

Tensor transpose(const Tensor& x, int axis_a, int axis_b) {
  return record("transpose", {x}, x.transposed(axis_a, axis_b).clone(),
                [axis_a, axis_b](const Tensor& dy) -> Grads {
                  return {dy.transposed(axis_a, axis_b).clone()};
                });
}

Tensor concat(const std::vector<Tensor>& parts, int axis) {
  check(!parts.empty(), ErrorKind::shape, "concat: no parts");
  if (axis < 0) axis += parts[0].rank();
  Shape shape = parts[0].shape();
  shape[axis] = 0;
  for (const Tensor& part : parts) {
    Shape rest = part.shape();
    check(part.rank() == shape.rank() && part.dtype() == parts[0].dtype(), ErrorKind::shape,
          "concat: {} {} beside {} {}", part.shape(), dtype_name(part.dtype()), parts[0].shape(),
          dtype_name(parts[0].dtype()));
    rest[axis] = parts[0].size(axis);
    check(rest == parts[0].shape(), ErrorKind::shape,
          "concat: {} beside {}; all sizes but that of axis {} must be equal", part.shape(),
          parts[0].shape(), axis);
    shape[axis] += part.size(axis);
  }
  Tensor y = Tensor::empty(shape, parts[0].dtype());
  int64_t at = 0;
  for (const Tensor& part : parts) {
    copy_into(part, y.slice(axis, at, part.size(axis)));
    at += part.size(axis);
  }
  std::vector<int64_t> sizes;
  for (const Tensor& part : parts) sizes.push_back(part.size(axis));
  record_many("concat", std::span<const Tensor>(parts), {&y},
              [axis, sizes](std::span<const Tensor> dys) -> Grads {
                Grads grads;
                int64_t begin = 0;
                for (int64_t size : sizes) {
                  grads.push_back(dys[0].slice(axis, begin, size).to_contiguous());
                  begin += size;
                }
                return grads;
              });
  return y;
}

Tensor join_segments(const Tensor& a, const Segments& sa, const Tensor& b, const Segments& sb) {
  check(sa.count() == sb.count() && sa.rows() == a.size(0) && sb.rows() == b.size(0) &&
            a.size(1) == b.size(1) && a.dtype() == b.dtype(),
        ErrorKind::shape, "join_segments: {} segments of {} {} and {} of {} {}", sa.count(),
        a.shape(), dtype_name(a.dtype()), sb.count(), b.shape(), dtype_name(b.dtype()));
  const Tensor y = Tensor::empty({a.size(0) + b.size(0), a.size(1)}, a.dtype());
  for (const bool second : {false, true}) {
    const Rows from = second ? b.rows() : a.rows();
    for_parts(sa, sb, second, [&](int64_t whole, int64_t part, int64_t rows) {
      kernels().convert(from.slice(part, rows), y.rows().slice(whole, rows));
    });
  }
  return record("join_segments", {a, b}, y, [sa, sb](const Tensor& dy) -> Grads {
    Grads grads;
    for (const bool second : {false, true}) {
      const Tensor d = Tensor::empty({second ? sb.rows() : sa.rows(), dy.size(1)}, dy.dtype());
      for_parts(sa, sb, second, [&](int64_t whole, int64_t part, int64_t rows) {
        kernels().convert(dy.rows().slice(whole, rows), d.rows().slice(part, rows));
      });
      grads.push_back(d);
    }
    return grads;
  });
}

}  // namespace heddle
