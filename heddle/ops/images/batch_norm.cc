// Batch norm: statistics, the norm, and the gradient through both.
#include "heddle/ops/images/batch_norm.h"

#include <cmath>

#include "heddle/kernels/kernels.h"

namespace heddle {
namespace {

void check_vector(const char* what, const Tensor& v, int64_t width) {
  check(v.shape() == Shape{width} && v.dtype() == DType::f32, ErrorKind::shape,
        "batch_norm: {} is {} {}; it must be [{}] f32, as wide as x", what, v.shape(),
        dtype_name(v.dtype()), width);
}

Tensor rstd_of(const Tensor& variance, float eps) {
  const Tensor rstd = empty_like(variance);
  for (int64_t c = 0; c < variance.elements(); ++c) {
    rstd.data<float>()[c] = 1 / std::sqrt(variance.data<float>()[c] + eps);
  }
  return rstd;
}

Rows rows_or_none(const Tensor& x) { return x.defined() ? x.rows() : Rows(); }

// What both passes read. y: where ReLU was open, if something was added before it.
struct Saved {
  Tensor x, mean, rstd, gamma, beta;
  bool adds, relu, is_fixed;
  Tensor y = {};

  BatchNormArgs args(const Rows& added, const Rows& result) const {
    return {.x = x.rows(),
            .added = added,
            .y = result,
            .mean = mean.data<float>(),
            .rstd = rstd.data<float>(),
            .gamma = gamma.data<float>(),
            .beta = beta.data<float>(),
            .relu = relu};
  }
  Grads gradients(const Tensor& dy) const {
    Tensor dx = empty_like(x), dgamma = empty_like(gamma), dbeta = empty_like(gamma);
    Tensor dadded = adds ? empty_like(x) : Tensor();
    const Rows kept = rows_or_none(y);  // the sum itself is not read again
    kernels().batch_norm_backward({.forward = args(kept, kept),
                                   .dy = dy.rows(),
                                   .dx = dx.rows(),
                                   .dadded = rows_or_none(dadded),
                                   .dgamma = dgamma.data<float>(),
                                   .dbeta = dbeta.data<float>(),
                                   .is_fixed = is_fixed});
    if (!adds) return {dx, dgamma, dbeta};
    return {dx, dgamma, dbeta, dadded};
  }
};

}  // namespace

ColumnMoments column_moments(const Tensor& x) {
  check(x.rank() == 2 && x.size(0) > 0, ErrorKind::shape,
        "column_moments: x is {}; there must be a row", x.shape());
  const ColumnMoments of{Tensor::empty({x.size(1)}, DType::f32),
                         Tensor::empty({x.size(1)}, DType::f32)};
  kernels().column_moments({x.rows(), of.mean.data<float>(), of.variance.data<float>()});
  return of;
}

Tensor batch_norm(const Tensor& x, const Tensor& gamma, const Tensor& beta, const Tensor& added,
                  const BatchNormOptions& options) {
  check(x.rank() == 2, ErrorKind::shape, "batch_norm: x is {}; it must be rows of pixels",
        x.shape());
  const bool is_fixed = options.fixed.mean.defined();
  const ColumnMoments of = is_fixed ? options.fixed : column_moments(x);
  check_vector("gamma", gamma, x.size(1)), check_vector("beta", beta, x.size(1));
  check_vector("the mean", of.mean, x.size(1)),
      check_vector("the variance", of.variance, x.size(1));
  check(!added.defined() || (added.shape() == x.shape() && added.dtype() == x.dtype()),
        ErrorKind::shape, "batch_norm: x is {} {}, what is added to it {} {}", x.shape(),
        dtype_name(x.dtype()), added.defined() ? added.shape() : Shape(),
        added.defined() ? dtype_name(added.dtype()) : "");
  if (options.found != nullptr) *options.found = of;
  const Tensor y = empty_like(x);
  Saved s{.x = x.detached(),
          .mean = of.mean,
          .rstd = rstd_of(of.variance, options.eps),
          .gamma = gamma.detached(),
          .beta = beta.detached(),
          .adds = added.defined(),
          .relu = options.relu,
          .is_fixed = is_fixed};
  kernels().batch_norm(s.args(rows_or_none(added), y.rows()));
  if (s.adds && s.relu) s.y = y;
  const auto backward = [s](const Tensor& dy) { return s.gradients(dy); };
  if (!added.defined()) return record("batch_norm", {x, gamma, beta}, y, backward);
  return record("batch_norm", {x, gamma, beta, added}, y, backward);
}

}  // namespace heddle
