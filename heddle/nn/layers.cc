// Products with weights in each precision, norms, and the end of an attention call.
#include "heddle/nn/layers.h"

#include "heddle/ops/shape.h"

namespace heddle::nn {

Linear::Linear(const Scope& s, const Options& o) : name_(s.prefix()) {
  weight_ = &(s / "weight").parameter({o.out, o.in}, o.init, o.layout);
  if (!o.is_head) weight_->between_hidden_states(), weight_->of_linear_layer();
  if (o.bias) bias_ = &(s / "bias").parameter({o.out}, o.bias_init);
  if (!o.gives_classes) return;
  weight_->of_classes();
  if (bias_ != nullptr) bias_->of_classes();
}

Linear::Linear(const Scope& s, const std::vector<std::string>& names, const Options& o)
    : Linear(s, names, std::vector<int64_t>(names.size(), o.out), o) {}

Linear::Linear(const Scope& s, const std::vector<std::string>& names,
               const std::vector<int64_t>& outs, const Options& o)
    : name_(s.prefix()) {
  check(o.layout == Layout::as_is, ErrorKind::internal, "{}: stacked weights lie as they are",
        name_);
  weight_ = &s.stacked(names, "weight", outs, {0, o.in}, o.init);
  if (!o.is_head) weight_->between_hidden_states(), weight_->of_linear_layer();
  if (o.bias) bias_ = &s.stacked(names, "bias", outs, {0}, o.bias_init);
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

WeightInUse::WeightInUse(Parameter& weight, const Run& run) : int8(run.int8 && !is_recording()) {
  const DType held = int8 ? DType::f32 : run.compute;
  w = is_recording() ? weight.in(held) : weight.in_or_master(held);
  if (!is_recording()) constant = weight.identity(held);
}

Tensor product(const Tensor& x, Parameter& weight, const Tensor& bias, const Run& run,
               LinearOptions options) {
  const QuantizedTensor* rounded = is_recording() ? nullptr : weight.quantized();
  if (rounded != nullptr) return quantized_linear(x, *rounded, bias, options);
  const WeightInUse used(weight, run);
  if (is_recording()) return linear(x, used.w, bias, {.activation = options.activation});
  options.constant_w = used.constant;
  options.int8 = used.int8;
  return linear(x, used.w, bias, options);
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
