// Which statistics a pass takes, and the running ones that training leaves.
#include "heddle/nn/images/batch_norm.h"

#include <cmath>

#include "heddle/ops/elementwise.h"
#include "heddle/ops/norm.h"

namespace heddle::nn {
namespace {

constexpr float kMomentum = 0.1f;

Tensor activated(const Tensor& x, Activation kind) {
  return kind == Activation::none ? x : activation(kind, x);
}

}  // namespace

BatchNorm::BatchNorm(const Scope& s, const Options& o)
    : name_(s.prefix()),
      options_(o),
      gamma_(&(s / "weight").parameter({o.width}, Init::ones())),
      beta_(&(s / "bias").parameter({o.width}, Init::zeros())),
      mean_(&(s / "running_mean").buffer(o.width, Init::zeros())),
      variance_(&(s / "running_var").buffer(o.width, Init::ones())),
      batches_(o.is_frozen ? nullptr : &(s / "num_batches_tracked").counter()) {}

// A pass that is not recorded is computed again, and recorded then.
Tensor BatchNorm::operator()(const Tensor& x, const NormTail& tail, const Run& run) const {
  const LayerName layer(name_);
  const bool trains = run.dropout.training && !options_.is_frozen && !mean_->is_fixed();
  const Activation kind = tail.activation;
  ColumnMoments found;
  BatchNormOptions options{
      .eps = static_cast<float>(options_.eps), .relu = kind == Activation::relu, .found = &found};
  if (!trains) options.fixed = running();
  const auto of = [&](Parameter* p) {
    const Tensor t = p->in(DType::f32);
    return options_.is_frozen ? t.detached() : t;
  };
  const Tensor y = batch_norm(x, of(gamma_), of(beta_), tail.added, options);
  if (trains && is_recording()) update(found, x.size(0));
  return options.relu ? y : activated(y, kind);
}

void BatchNorm::update(const ColumnMoments& of, int64_t rows) const {
  const float unbiased = rows < 2 ? 1.0f : static_cast<float>(rows) / static_cast<float>(rows - 1);
  float* const mean = mean_->value().data<float>();
  float* const variance = variance_->value().data<float>();
  for (int64_t c = 0; c < options_.width; ++c) {
    mean[c] += kMomentum * (of.mean.data<float>()[c] - mean[c]);
    variance[c] += kMomentum * (of.variance.data<float>()[c] * unbiased - variance[c]);
  }
  batches_->value().data<float>()[0] += 1;
  for (Parameter* p : {mean_, variance_, batches_}) p->changed(false);
}

std::pair<Tensor, Tensor> BatchNorm::line() const {
  const Tensor scale = Tensor::empty({options_.width}, DType::f32), shift = empty_like(scale);
  for (int64_t c = 0; c < options_.width; ++c) {
    const auto at = [c](const Parameter* p) {
      return static_cast<double>(p->value().data<float>()[c]);
    };
    const double slope = at(gamma_) / std::sqrt(at(variance_) + options_.eps);
    scale.data<float>()[c] = static_cast<float>(slope);
    shift.data<float>()[c] = static_cast<float>(at(beta_) - at(mean_) * slope);
  }
  return {scale, shift};
}

std::array<uint64_t, 4> BatchNorm::identity() const {
  const auto of = [](Parameter* p) { return p->identity(DType::f32); };
  return {of(gamma_), of(beta_), of(mean_), of(variance_)};
}

GroupNorm::GroupNorm(const Scope& s, int64_t width, int64_t groups, double eps)
    : name_(s.prefix()),
      groups_(groups),
      eps_(static_cast<float>(eps)),
      gamma_(&(s / "weight").parameter({width}, Init::ones())),
      beta_(&(s / "bias").parameter({width}, Init::zeros())) {}

Tensor GroupNorm::operator()(const Tensor& x, const Segments& images, const NormTail& tail,
                             const Run&) const {
  const LayerName layer(name_);
  const Tensor y =
      group_norm(x, gamma_->in(DType::f32), beta_->in(DType::f32), images, groups_, eps_);
  return activated(tail.added.defined() ? add(y, tail.added) : y, tail.activation);
}

}  // namespace heddle::nn
