// Layer norm, its fused sums and their plain definitions.
#include "heddle/ops/norm.h"

#include "heddle/ops/elementwise.h"

namespace heddle {
namespace {

void check_sizes(const Tensor& x, const Tensor& gamma, const Tensor& beta) {
  const Shape width{x.size(-1)};
  check(gamma.shape() == width && beta.shape() == width, ErrorKind::shape,
        "layer_norm: x is {}, gamma {}, beta {}; they must be as wide as x", x.shape(),
        gamma.shape(), beta.shape());
}

// What the backward pass needs; `sub` is true if there was a second summand.
struct Saved {
  Tensor h, gamma, mean, rstd;
  DropoutSpec spec;
  bool sub = false;
};

Grads norm_gradient(const Saved& s, const Tensor& dh_in, const Tensor& dy) {
  Tensor dgamma = Tensor::empty(s.gamma.shape(), DType::f32);
  Tensor dbeta = Tensor::empty(s.gamma.shape(), DType::f32);
  Tensor dh = empty_like(s.h);
  const bool masked = s.sub && s.spec.p > 0;
  Tensor dsub = masked ? empty_like(s.h) : dh;
  kernels().norm_backward({.h = s.h.rows(),
                           .dy = dy.rows(),
                           .dh_in = dh_in.defined() ? dh_in.rows() : Rows{},
                           .dh = dh.rows(),
                           .dsub = masked ? dsub.rows() : Rows{},
                           .dropout = masked ? s.spec.over(s.h.rows().rows) : Dropout{},
                           .gamma = s.gamma.data<float>(),
                           .mean = s.mean.data<float>(),
                           .rstd = s.rstd.data<float>(),
                           .dgamma = dgamma.data<float>(),
                           .dbeta = dbeta.data<float>()});
  if (!s.sub) return {dh, dgamma, dbeta};
  return {dh, dsub, dgamma, dbeta};
}

}  // namespace

Tensor layer_norm(const Tensor& x, const Tensor& gamma, const Tensor& beta, float eps) {
  check_sizes(x, gamma, beta);
  const Rows in = x.rows();
  Tensor y = empty_like(x);
  Saved s{x.detached(),
          gamma.detached(),
          Tensor::empty({in.rows}, DType::f32),
          Tensor::empty({in.rows}, DType::f32),
          {},
          false};
  kernels().norm({.x = in,
                  .y = y.rows(),
                  .gamma = gamma.data<float>(),
                  .beta = beta.data<float>(),
                  .eps = eps,
                  .mean = s.mean.data<float>(),
                  .rstd = s.rstd.data<float>()});
  return record("layer_norm", {x, gamma, beta}, y,
                [s](const Tensor& dy) -> Grads { return norm_gradient(s, {}, dy); });
}

AddNorm add_norm(const Tensor& x, const Tensor& sub, const DropoutSpec& spec, const Tensor& gamma,
                 const Tensor& beta, float eps) {
  check_sizes(x, gamma, beta);
  check(x.shape() == sub.shape() && x.dtype() == sub.dtype(), ErrorKind::shape,
        "add_norm: x is {} {}, sub {} {}", x.shape(), dtype_name(x.dtype()), sub.shape(),
        dtype_name(sub.dtype()));
  const Rows in = x.rows();
  AddNorm out{empty_like(x), empty_like(x)};
  Saved s{out.sum,
          gamma.detached(),
          Tensor::empty({in.rows}, DType::f32),
          Tensor::empty({in.rows}, DType::f32),
          spec,
          true};
  kernels().norm({.x = in,
                  .sub = sub.rows(),
                  .dropout = spec.over(in.rows),
                  .h = out.sum.rows(),
                  .y = out.norm.rows(),
                  .gamma = gamma.data<float>(),
                  .beta = beta.data<float>(),
                  .eps = eps,
                  .mean = s.mean.data<float>(),
                  .rstd = s.rstd.data<float>()});
  record_many("add_norm", std::array{x, sub, gamma, beta}, {&out.sum, &out.norm},
              [s](std::span<const Tensor> dys) -> Grads {
                if (dys[1].defined()) return norm_gradient(s, dys[0], dys[1]);
                // Nothing used the norm: the sum alone passes its gradient on.
                Tensor dsub = dys[0];
                if (s.spec.p > 0) {
                  dsub = empty_like(s.h);
                  kernels().dropout(dys[0].rows(), s.spec.over(s.h.rows().rows), dsub.rows());
                }
                return {dys[0], dsub, {}, {}};
              });
  return out;
}

AddNorm add_norm_reference(const Tensor& x, const Tensor& sub, const DropoutSpec& spec,
                           const Tensor& gamma, const Tensor& beta, float eps) {
  const Tensor h = add(x, dropout(sub, spec));
  return {h, layer_norm(h, gamma, beta, eps)};
}

Tensor dropout_add(const Tensor& x, const Tensor& sub, const DropoutSpec& spec) {
  return add(x, dropout(sub, spec));
}

}  // namespace heddle
