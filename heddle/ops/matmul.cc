// Matrix products by the one driver, and their gradients, which are products too.
#include "heddle/ops/matmul.h"

#include "heddle/kernels/kernels.h"
#include "heddle/ops/elementwise.h"
#include "heddle/ops/shape.h"

namespace heddle {

Tensor matmul(const Tensor& a, const Tensor& b) {
  check(a.rank() == 2 && b.rank() == 2 && a.size(1) == b.size(0) && a.dtype() == b.dtype(),
        ErrorKind::shape, "matmul: {} {} times {} {}", a.shape(), dtype_name(a.dtype()), b.shape(),
        dtype_name(b.dtype()));
  Tensor y = Tensor::empty({a.size(0), b.size(1)}, a.dtype());
  kernels().gemm({.a = a.rows(), .b = b.rows(), .c = y.rows()});
  return record(
      "matmul", {a, b}, y, [a = a.detached(), b = b.detached()](const Tensor& dy) -> Grads {
        Tensor da = empty_like(a), db = empty_like(b);
        kernels().gemm({.a = dy.rows(), .b = b.rows(), .c = da.rows(), .transpose_b = true});
        kernels().gemm({.a = a.rows(), .b = dy.rows(), .c = db.rows(), .transpose_a = true});
        return {da, db};
      });
}

namespace {

void check_linear(const Tensor& x, const Tensor& w, const Tensor& bias, bool fits) {
  check(x.rank() == 2 && w.rank() == 2 && x.size(1) == w.size(1) && fits, ErrorKind::shape,
        "linear: x is {} {}, the weight is {} {}; the last axes must be equal", x.shape(),
        dtype_name(x.dtype()), w.shape(), dtype_name(w.dtype()));
  check(!bias.defined() || bias.shape() == Shape{w.size(0)}, ErrorKind::shape,
        "linear: the weight is {}, the bias {}", w.shape(),
        bias.defined() ? bias.shape() : Shape());
}

}  // namespace

Tensor linear(const Tensor& x, const Tensor& w, const Tensor& bias, uint64_t constant_w) {
  check_linear(x, w, bias, x.dtype() == w.dtype());
  Tensor y = Tensor::empty({x.size(0), w.size(0)}, x.dtype());
  kernels().gemm({.a = x.rows(),
                  .b = w.rows(),
                  .c = y.rows(),
                  .bias = bias.defined() ? bias.data<float>() : nullptr,
                  .transpose_b = true,
                  .constant_b = constant_w});
  const bool x_needs = needs_grad({&x}), has_bias = bias.defined();
  // dL/dx = dy w; dL/dw = dyᵀ x in f32; dL/dbias = sum of the rows of dy.
  return record(
      "linear", {x, w, bias}, y,
      [x = x.detached(), w = w.detached(), x_needs, has_bias](const Tensor& dy) -> Grads {
        Tensor dx, db;
        if (x_needs) {
          dx = empty_like(x);
          kernels().gemm({.a = dy.rows(), .b = w.rows(), .c = dx.rows()});
        }
        Tensor dw = Tensor::empty(w.shape(), DType::f32);
        kernels().gemm({.a = dy.rows(), .b = x.rows(), .c = dw.rows(), .transpose_a = true});
        if (has_bias) {
          db = Tensor::empty({dy.size(1)}, DType::f32);
          kernels().sum_columns(dy.rows(), db.data<float>());
        }
        return {dx, dw, db};
      });
}

Tensor linear_int8(const Tensor& x, const Tensor& w, const Tensor& bias, uint64_t constant_w,
                   DType out) {
  check_linear(x, w, bias, w.dtype() == DType::f32);
  check(!is_recording(), ErrorKind::internal, "linear: int8 has no gradient");
  Tensor y = Tensor::empty({x.size(0), w.size(0)}, out);
  kernels().gemm({.a = x.rows(),
                  .b = w.rows(),
                  .c = y.rows(),
                  .bias = bias.defined() ? bias.data<float>() : nullptr,
                  .transpose_b = true,
                  .constant_b = constant_w,
                  .int8 = true});
  return y;
}

Tensor linear_reference(const Tensor& x, const Tensor& w, const Tensor& bias) {
  const Tensor y = matmul(x, transpose(w, 0, 1));
  return bias.defined() ? add_bias(y, bias) : y;
}

}  // namespace heddle
