// Linear layers, layer norm and the two placements of the norm in a residual stream.
#include "heddle/nn/layers.h"

#include "heddle/ops/shape.h"

namespace heddle::nn {

Linear::Linear(const Scope& s, const Options& o) : name_(s.prefix()) {
  weight_ = &(s / "weight").parameter({o.out, o.in}, o.init, o.layout);
  if (o.bias) bias_ = &(s / "bias").parameter({o.out}, Init::zeros());
}

Linear::Linear(const Scope& s, const std::vector<std::string>& names, const Options& o)
    : Linear(s, names, std::vector<int64_t>(names.size(), o.out), o) {}

Linear::Linear(const Scope& s, const std::vector<std::string>& names,
               const std::vector<int64_t>& outs, const Options& o)
    : name_(s.prefix()) {
  check(o.layout == Layout::as_is, ErrorKind::internal, "{}: stacked weights lie as they are",
        name_);
  weight_ = &s.stacked(names, "weight", outs, {0, o.in}, o.init);
  if (o.bias) bias_ = &s.stacked(names, "bias", outs, {0}, Init::zeros());
}

Tensor Linear::operator()(const Tensor& x, const Run& run, Activation kind) const {
  const LayerName layer(name_);
  return product(x, *weight_, bias_ == nullptr ? Tensor() : bias_->in(DType::f32), run,
                 {.activation = kind});
}

Tensor Linear::columns(const Tensor& x, int64_t first, int64_t count, const Run& run) const {
  const LayerName layer(name_);
  const Tensor bias = bias_ == nullptr ? Tensor() : bias_->in(DType::f32);
  if (!is_recording() && first % 64 == 0) {
    return product(x, *weight_, bias, run, {.first = first, .count = count});
  }
  return linear(x, slice(weight_->in(run.compute), 0, first, count),
                bias.defined() ? slice(bias, 0, first, count) : bias);
}

Tensor product(const Tensor& x, Parameter& weight, const Tensor& bias, const Run& run,
               LinearOptions options) {
  if (is_recording()) {
    return linear(x, weight.in(run.compute), bias, {.activation = options.activation});
  }
  const DType held = run.int8 ? DType::f32 : run.compute;
  options.constant_w = weight.identity(held);
  options.int8 = run.int8;
  return linear(x, weight.in_or_master(held), bias, options);
}

LayerNorm::LayerNorm(const Scope& s, int64_t width, double eps, bool is_rms)
    : name_(s.prefix()),
      gamma_(&(s / "weight").parameter({width}, Init::ones())),
      eps_(static_cast<float>(eps)) {
  if (!is_rms) beta_ = &(s / "bias").parameter({width}, Init::zeros());
}

Tensor LayerNorm::operator()(const Tensor& x) const {
  const LayerName layer(name_);
  return layer_norm(x, gamma_->in(DType::f32), beta(), eps_);
}

AddNorm LayerNorm::add(const Tensor& x, const Tensor& sub, const DropoutSpec& spec) const {
  const LayerName layer(name_);
  return add_norm(x, sub, spec, gamma_->in(DType::f32), beta(), eps_);
}

Tensor Residual::enter(const LayerNorm& norm) {
  if (!is_pre_) return x_;
  if (!pending_.defined()) return norm(x_);
  AddNorm both = norm.add(x_, pending_, spec_);
  x_ = both.sum;
  pending_ = {};
  return both.norm;
}

void Residual::leave(const Tensor& sub, const DropoutSpec& spec, const LayerNorm& norm) {
  if (is_pre_) {
    x_ = value();
    pending_ = sub;
    spec_ = spec;
  } else {
    x_ = norm.add(x_, sub, spec).norm;
  }
}

Tensor Residual::value() {
  if (pending_.defined()) {
    x_ = dropout_add(x_, pending_, spec_);
    pending_ = {};
  }
  return x_;
}

void Residual::pass_recomputed(const Layer& layer, std::span<const Tensor> outside,
                               std::vector<Tensor>* left) {
  std::vector<Tensor> inputs = {x_};
  const bool was_put_off = pending_.defined();
  if (was_put_off) inputs.push_back(pending_);
  inputs.insert(inputs.end(), outside.begin(), outside.end());
  struct PutOff {
    DropoutSpec spec;
    bool is_there = false;
  };
  const auto put_off = std::make_shared<PutOff>();  // by the layer
  const auto outputs =
      heddle::recompute(inputs, [layer, was_put_off, before = spec_, is_pre = is_pre_, put_off,
                                 left](std::span<const Tensor> in) {
        Residual x(in[0], is_pre);
        x.spec_ = before;
        if (was_put_off) x.pending_ = in[1];
        const size_t others = left == nullptr ? 0 : left->size();
        layer(x, in.subspan(was_put_off ? 2 : 1));
        *put_off = {x.spec_, x.pending_.defined()};
        std::vector<Tensor> out = {x.x_};
        if (put_off->is_there) out.push_back(x.pending_);
        if (left != nullptr) {  // an output of all that is computed again, both times
          out.insert(out.end(), left->begin() + static_cast<int64_t>(others), left->end());
          left->resize(others);
        }
        return out;
      });
  x_ = outputs[0];
  pending_ = put_off->is_there ? outputs[1] : Tensor();
  spec_ = put_off->spec;
  if (left != nullptr) {
    left->insert(left->end(), outputs.begin() + (put_off->is_there ? 2 : 1), outputs.end());
  }
}

void observe(const Run& run, const std::string& name, Residual& x) {
  if (run.observer != nullptr && run.observer->hidden) run.observer->hidden(name, x.value());
}

Tensor project_heads(const Linear& out, const std::string& name, AttentionSteps steps,
                     const Run& run) {
  const Observer* o = run.observer;
  if (o != nullptr && o->heads) steps.heads = o->heads(name, steps.heads);
  const Tensor y = out(steps.heads, run);
  if (o != nullptr && o->steps) {
    o->steps(name, {steps.x.detached(), steps.v.detached(), steps.heads.detached(), y.detached()});
  }
  return y;
}

}  // namespace heddle::nn
