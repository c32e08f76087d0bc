// Layer norm and RMS norm, their sums with the residual stream, and group norm.
#include "heddle/ops/norm.h"

#include "heddle/autograd/tape.h"
#include "heddle/kernels/norm.h"
#include "heddle/ops/elementwise.h"

namespace heddle {
namespace {

// beta is undefined in an RMS norm.
void check_sizes(const Tensor& x, const Tensor& gamma, const Tensor& beta) {
  const Shape width{x.size(-1)};
  const auto fits = [&](const Tensor& v) { return v.shape() == width && v.dtype() == DType::f32; };
  const Tensor& other = beta.defined() ? beta : gamma;
  check(fits(gamma) && fits(other), ErrorKind::shape,
        "norm: x is {}, gamma {} {}, beta {} {}; they must be as wide as x, in f32", x.shape(),
        gamma.shape(), dtype_name(gamma.dtype()), other.shape(), dtype_name(other.dtype()));
}

// What the backward pass needs; `sub` is true if there was a second summand.
struct SavedNorm {
  Tensor h, gamma;
  DropoutSpec spec;
  bool sub;
  Tensor mean = {}, rstd = {};  // mean: undefined in an RMS norm; both where there is no gradient
};

float* values_of(const Tensor& x) { return x.defined() ? x.data<float>() : nullptr; }

// Of x, sub (if there is one), gamma and beta (if there is one).
Grads norm_gradient(const SavedNorm& s, const Tensor& dh_in, const Tensor& dy) {
  Tensor dgamma = Tensor::empty(s.gamma.shape(), DType::f32), dbeta;
  if (s.mean.defined()) dbeta = Tensor::empty(s.gamma.shape(), DType::f32);
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
                           .mean = values_of(s.mean),
                           .rstd = s.rstd.data<float>(),
                           .dgamma = dgamma.data<float>(),
                           .dbeta = values_of(dbeta)});
  Grads grads = {dh};
  if (s.sub) grads.push_back(dsub);
  grads.push_back(dgamma);
  if (s.mean.defined()) grads.push_back(dbeta);
  return grads;
}

Rows rows_of(const Tensor& x) { return x.defined() ? x.rows() : Rows{}; }

// All norms. `sub` is undefined where nothing is added; beta is in an RMS norm.
AddNorm norm(const char* name, const Tensor& x, const Tensor& sub, const DropoutSpec& spec,
             const Tensor& gamma, const Tensor& beta, float eps) {
  check_sizes(x, gamma, beta);
  const bool adds = sub.defined();
  check(!adds || (x.shape() == sub.shape() && x.dtype() == sub.dtype()), ErrorKind::shape,
        "{}: x is {} {}, sub {} {}", name, x.shape(), dtype_name(x.dtype()),
        adds ? sub.shape() : Shape(), dtype_name(sub.dtype()));
  const Rows in = x.rows();
  AddNorm out{adds ? empty_like(x) : Tensor(), empty_like(x)};
  Tensor mean, rstd;
  if (needs_grad({&x, &sub, &gamma, &beta})) {
    rstd = Tensor::empty({in.rows}, DType::f32);
    if (beta.defined()) mean = empty_like(rstd);
  }
  kernels().norm({.x = in,
                  .sub = rows_of(sub),
                  .dropout = spec.over(in.rows),
                  .h = rows_of(out.sum),
                  .y = out.norm.rows(),
                  .gamma = gamma.data<float>(),
                  .beta = values_of(beta),
                  .eps = eps,
                  .mean = values_of(mean),
                  .rstd = values_of(rstd)});
  if (!needs_record({&x, &sub, &gamma, &beta})) return out;
  const SavedNorm s{(adds ? out.sum : x).detached(), gamma.detached(), spec, adds, mean, rstd};
  std::vector<Tensor> inputs = {x};
  for (const Tensor& input : {sub, gamma, beta}) {
    if (input.defined()) inputs.push_back(input);
  }
  if (!adds) {
    record_many(name, inputs, {&out.norm},
                [s](std::span<const Tensor> dys) { return norm_gradient(s, {}, dys[0]); });
    return out;
  }
  record_many(name, inputs, {&out.sum, &out.norm}, [s](std::span<const Tensor> dys) -> Grads {
    if (dys[1].defined()) return norm_gradient(s, dys[0], dys[1]);
    // Nothing used the norm: the sum alone passes its gradient on.
    Tensor dsub = dys[0];
    if (s.spec.p > 0) {
      dsub = empty_like(s.h);
      kernels().dropout(dys[0].rows(), s.spec.over(s.h.rows().rows), dsub.rows());
    }
    Grads grads = {dys[0], dsub};
    grads.resize(s.mean.defined() ? 4 : 3);
    return grads;
  });
  return out;
}

}  // namespace

Tensor layer_norm(const Tensor& x, const Tensor& gamma, const Tensor& beta, float eps) {
  return norm(beta.defined() ? "layer_norm" : "rms_norm", x, {}, {}, gamma, beta, eps).norm;
}

Tensor group_norm(const Tensor& x, const Tensor& gamma, const Tensor& beta,
                  const Segments& segments, int64_t groups, float eps) {
  check_sizes(x, gamma, beta);
  check(groups > 0 && x.size(1) % groups == 0 && segments.rows() == x.size(0), ErrorKind::shape,
        "group_norm: x is {}; {} groups must divide its width, and {} rows of segments be its own",
        x.shape(), groups, segments.rows());
  Tensor y = empty_like(x), mean = Tensor::empty({segments.count(), groups}, DType::f32);
  const Tensor rstd = empty_like(mean);
  const auto args = [=, kept = x.detached(), g = gamma.detached(), b = beta.detached()] {
    return GroupNormArgs{.x = kept.rows(),
                         .offsets = segments.offsets().data(),
                         .segments = segments.count(),
                         .groups = groups,
                         .gamma = g.data<float>(),
                         .beta = b.data<float>(),
                         .eps = eps,
                         .mean = mean.data<float>(),
                         .rstd = rstd.data<float>()};
  };
  GroupNormArgs forward = args();
  forward.y = y.rows();
  kernels().group_norm(forward);
  return record("group_norm", {x, gamma, beta}, y, [args](const Tensor& dy) -> Grads {
    Tensor dx = empty_like(dy), dgamma = Tensor::empty({dy.size(1)}, DType::f32);
    Tensor dbeta = empty_like(dgamma);
    kernels().group_norm_backward({.forward = args(),
                                   .dy = dy.rows(),
                                   .dx = dx.rows(),
                                   .dgamma = dgamma.data<float>(),
                                   .dbeta = dbeta.data<float>()});
    return {dx, dgamma, dbeta};
  });
}

AddNorm add_norm(const Tensor& x, const Tensor& sub, const DropoutSpec& spec, const Tensor& gamma,
                 const Tensor& beta, float eps) {
  return norm(beta.defined() ? "add_norm" : "add_rms_norm", x, sub, spec, gamma, beta, eps);
}

Tensor dropout_add(const Tensor& x, const Tensor& sub, const DropoutSpec& spec) {
  return add(x, dropout(sub, spec));
}

}  // namespace heddle
