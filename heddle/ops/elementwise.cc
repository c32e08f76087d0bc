// Elementwise ops and their gradients.
#include "heddle/ops/elementwise.h"

namespace heddle {
namespace {

void check_same(const char* name, const Tensor& a, const Tensor& b) {
  check(a.shape() == b.shape(), ErrorKind::shape, "{}: shapes {} and {} differ", name, a.shape(),
        b.shape());
}

}  // namespace

Tensor add(const Tensor& a, const Tensor& b) {
  check_same("add", a, b);
  Tensor y = empty_like(a);
  kernels().add(a.rows(), b.rows(), y.rows());
  return record("add", {a, b}, y, [](const Tensor& dy) -> Grads { return {dy, dy}; });
}

Tensor mul(const Tensor& a, const Tensor& b) {
  check_same("mul", a, b);
  Tensor y = empty_like(a);
  kernels().mul(a.rows(), b.rows(), y.rows());
  return record("mul", {a, b}, y, [a, b](const Tensor& dy) -> Grads {
    Tensor da = empty_like(a), db = empty_like(b);
    kernels().mul(dy.rows(), b.rows(), da.rows());
    kernels().mul(dy.rows(), a.rows(), db.rows());
    return {da, db};
  });
}

Tensor scale(const Tensor& x, float factor) {
  Tensor y = empty_like(x);
  kernels().axpby(factor, x.rows(), 0, y.rows());
  return record("scale", {x}, y, [factor](const Tensor& dy) -> Grads {
    Tensor dx = empty_like(dy);
    kernels().axpby(factor, dy.rows(), 0, dx.rows());
    return {dx};
  });
}

Tensor add_bias(const Tensor& x, const Tensor& bias) {
  check(bias.rank() == 1 && bias.dtype() == DType::f32 && x.size(-1) == bias.size(0),
        ErrorKind::shape, "add_bias: x is {}, bias is {} {}", x.shape(), bias.shape(),
        dtype_name(bias.dtype()));
  Tensor y = empty_like(x);
  kernels().add_row(x.rows(), bias.data<float>(), y.rows());
  return record("add_bias", {x, bias}, y, [](const Tensor& dy) -> Grads {
    Tensor db = Tensor::empty({dy.size(-1)}, DType::f32);
    kernels().sum_columns(dy.rows(), db.data<float>());
    return {dy, db};
  });
}

Tensor cast(const Tensor& x, DType dtype) {
  if (x.dtype() == dtype) return x;
  Tensor y = empty_like(x, dtype);
  kernels().convert(x.rows(), y.rows());
  return record("cast", {x}, y, [from = x.dtype()](const Tensor& dy) -> Grads {
    Tensor dx = empty_like(dy, from);
    kernels().convert(dy.rows(), dx.rows());
    return {dx};
  });
}

Tensor activation(Activation kind, const Tensor& x, const DropoutSpec& spec) {
  const Rows in = x.rows();
  Tensor y = empty_like(x);
  kernels().activation(kind, in, spec.over(in.rows), y.rows());
  // ReLU's slope shows in its result too, which the next product keeps anyway: x need not stay.
  const Tensor kept = kind == Activation::relu ? y.detached() : x.detached();
  return record("activation", {x}, y, [kind, spec, kept](const Tensor& dy) -> Grads {
    Tensor dx = empty_like(dy);
    kernels().activation_backward(kind, kept.rows(), dy.rows(), spec.over(dy.rows().rows),
                                  dx.rows());
    return {dx};
  });
}

}  // namespace heddle
