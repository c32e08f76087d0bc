// Sums, whose order does not depend on the number of threads; softmax, whose gradient needs the
// output only.
#include "heddle/ops/reduce.h"

#include "heddle/kernels/kernels.h"
#include "heddle/ops/elementwise.h"

namespace heddle {

Tensor sum(const Tensor& x) {
  const Rows rows = x.rows();
  Tensor per_row = Tensor::empty({rows.rows}, DType::f32);
  kernels().sum_rows(rows, per_row.data<float>());
  Tensor y = Tensor::empty({1}, DType::f32);
  double total = 0;
  for (int64_t r = 0; r < rows.rows; ++r) total += per_row.data<float>()[r];
  y.data<float>()[0] = static_cast<float>(total);
  return record("sum", {x}, y, [shape = x.shape(), dtype = x.dtype()](const Tensor& dy) -> Grads {
    return {Tensor::full(shape, dy.item(), dtype)};
  });
}

Tensor dot(const Tensor& x, const Tensor& w) { return sum(mul(x, w)); }

Tensor segment_mean(const Tensor& x, const Segments& segments) {
  check(x.rank() == 2 && segments.rows() == x.size(0), ErrorKind::shape,
        "segment_mean: x is {}, the segments are of {} rows", x.shape(), segments.rows());
  for (int64_t i = 0; i < segments.count(); ++i) {
    check(segments.length(i) > 0, ErrorKind::shape, "segment_mean: segment {} has no rows", i);
  }
  Tensor y = Tensor::empty({segments.count(), x.size(1)}, x.dtype());
  kernels().segment_mean(x.rows(), segments.offsets().data(), y.rows());
  return record("segment_mean", {x}, y, [segments, shape = x.shape()](const Tensor& dy) -> Grads {
    Tensor dx = Tensor::empty(shape, dy.dtype());
    kernels().segment_mean_backward(dy.rows(), segments.offsets().data(), dx.rows());
    return {dx};
  });
}

Tensor softmax(const Tensor& x) {
  Tensor y = empty_like(x);
  kernels().softmax(x.rows(), y.rows());
  // dL/dx = y * (dy - sum(y * dy)): needs y only, so x can be freed.
  return record("softmax", {x}, y, [y = y.detached()](const Tensor& dy) -> Grads {
    Tensor dx = empty_like(y);
    kernels().softmax_backward(y.rows(), dy.rows(), dx.rows());
    return {dx};
  });
}

}  // namespace heddle
