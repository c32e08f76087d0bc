// Matrix products by the one driver, and their gradients, which are products too.
#include "heddle/ops/matmul.h"

#include "heddle/autograd/tape.h"
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

void check_bias(const char* name, const Tensor& bias, int64_t outputs) {
  check(!bias.defined() || (bias.shape() == Shape{outputs} && bias.dtype() == DType::f32),
        ErrorKind::shape, "{}: the bias is {} {}; it must be [{}] f32, a number for each output",
        name, bias.shape(), dtype_name(bias.dtype()), outputs);
}

Tensor linear(const Tensor& x, const Tensor& w, const Tensor& bias, const LinearOptions& options) {
  const bool rounds = options.constant_w != 0 && w.dtype() == DType::f32;
  check(x.rank() == 2 && w.rank() == 2 && x.size(1) == w.size(1) &&
            (x.dtype() == w.dtype() || rounds),
        ErrorKind::shape, "linear: x is {} {}, the weight is {} {}; the last axes must be equal",
        x.shape(), dtype_name(x.dtype()), w.shape(), dtype_name(w.dtype()));
  check_bias("linear", bias, w.size(0));
  const DType result = options.result.value_or(x.dtype());
  const bool has_gradient = needs_grad({&x, &w, &bias});
  check(!has_gradient || (!options.int8 && result == x.dtype() && !options.added.defined()),
        ErrorKind::internal,
        "linear: int8, a result of another dtype than x, and what is added have no gradient");
  const Activation kind = options.activation;
  const int64_t outputs = options.count < 0 ? w.size(0) - options.first : options.count;
  check(options.first >= 0 && outputs >= 0 && options.first + outputs <= w.size(0) &&
            (!has_gradient || outputs == w.size(0)),
        ErrorKind::internal, "linear: {} outputs from {} on of {}", outputs, options.first,
        w.size(0));
  Tensor y =
      options.may_overwrite_added ? options.added : Tensor::empty({x.size(0), outputs}, result);
  check(!options.added.defined() ||
            (options.added.shape() == y.shape() && options.added.dtype() == result),
        ErrorKind::shape, "linear: the result is {} {}, what is added to it {} {}", y.shape(),
        dtype_name(result), options.added.shape(), dtype_name(options.added.dtype()));
  // What the activation's slope is found from: its input, or, for ReLU, its result.
  Tensor kept = kind == Activation::relu ? y : Tensor();
  if (kind != Activation::none && !kept.defined() && has_gradient) {
    kept = empty_like(y);
  }
  kernels().gemm(
      {.a = x.rows(),
       .b = w.rows(),
       .c = y.rows(),
       .bias = bias.defined() ? bias.data<float>() + options.first : nullptr,
       .transpose_b = true,
       .constant_b = options.constant_w,
       .first = options.first,
       .added = options.added.defined() ? options.added.rows() : Rows(),
       .activation = kind,
       .pre_activation = kept.defined() && kind != Activation::relu ? kept.rows() : Rows(),
       .int8 = options.int8});
  if (!needs_record({&x, &w, &bias})) return y;
  const bool x_needs = needs_grad({&x}), has_bias = bias.defined();
  // dL/dx = dy w; dL/dw = dyᵀ x in f32; dL/dbias = sum of the rows of dy.
  return record(
      "linear", {x, w, bias}, y,
      [x = x.detached(), w = w.detached(), kept, kind, x_needs,
       has_bias](const Tensor& dresult) -> Grads {
        Tensor dy = dresult, dx, db;
        if (kind != Activation::none) {
          dy = empty_like(dresult);
          kernels().activation_backward(kind, kept.rows(), dresult.rows(), {}, dy.rows());
        }
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

}  // namespace heddle
