// One update: the norm of the gradients, clipping, Adam, SGD or Muon, the average; the formulas of
// the schedules.
#include "heddle/train/optimizer.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

#include "heddle/base/parallel.h"
#include "heddle/base/profile.h"
#include "heddle/kernels/kernels.h"
#include "heddle/train/muon.h"

namespace heddle::train {
namespace {

// ema += share * (w - ema)
void average(Tensor& ema, const float* w, float share) {
  float* const to = ema.data<float>();
  for (int64_t i = 0; i < ema.elements(); ++i) to[i] += share * (w[i] - to[i]);
}

std::vector<ElementRange> all_of(const nn::Parameters& parameters) {
  std::vector<ElementRange> ranges;
  for (const auto& p : parameters.all()) ranges.push_back({0, p->elements()});
  return ranges;
}

// Of all elements; null: none came.
float* gradient_values(nn::Parameter& p) {
  const Tensor& grad = p.grad();
  if (!grad.defined()) return nullptr;
  check(grad.elements() == p.elements() && grad.contiguous(), ErrorKind::shape,
        "{} is {}, its gradient {}", p.name(), p.shape(), grad.shape());
  return grad.data<float>();
}

}  // namespace

Optimizer::Optimizer(nn::Parameters& parameters, const OptimizerOptions& options)
    : Optimizer(parameters, options, all_of(parameters)) {}

Optimizer::Optimizer(nn::Parameters& parameters, const OptimizerOptions& options,
                     std::vector<ElementRange> ranges)
    : parameters_(&parameters), options_(options), ranges_(std::move(ranges)) {
  check(ranges_.size() == parameters.all().size(), ErrorKind::shape,
        "there are {} ranges of elements for {} parameters; each has one", ranges_.size(),
        parameters.all().size());
  for (size_t i = 0; i < parameters.all().size(); ++i) {
    const nn::Parameter& p = *parameters.all()[i];
    const auto [begin, size] = ranges_[i];
    const bool is_inside = begin >= 0 && size > 0 && size <= p.elements() - begin;
    check(size == 0 || is_inside, ErrorKind::shape, "{}: {} elements from {} on of {}", p.name(),
          size, begin, p.elements());
    const bool is_whole = size == p.elements();
    const Shape shape = is_whole ? p.shape() : Shape{size};
    check(is_whole || size == 0 || !goes_by_muon(p), ErrorKind::internal,
          "{}: Muon needs the whole matrix", p.name());
    Moments m;
    if (!p.is_buffer()) m.m = Tensor::zeros(shape, DType::f32);
    if (!p.is_buffer() && !options.is_sgd && !goes_by_muon(p))
      m.v = Tensor::zeros(shape, DType::f32);
    if (options.ema_decay > 0) {
      m.ema = Tensor::empty(shape, DType::f32);
      std::copy_n(p.value().data<float>() + begin, size, m.ema.data<float>());
    }
    moments_.push_back(std::move(m));
    rate_factors_.push_back(1);
  }
  const bool has_matrix =
      std::ranges::any_of(parameters.all(), [](const auto& p) { return p->is_hidden_matrix(); });
  check(!options.is_muon || has_matrix, ErrorKind::usage,
        "`optimizer` is muon, but none of the {} weights to be trained is a matrix between hidden "
        "states (adapters, heads and tables are none): take adamw, or train some by `train_only`",
        parameters.all().size());
}

double Optimizer::gradient_norm() const {
  const ProfilePhase phase("gradient norm");
  double sum = 0;
  for (const auto& p : parameters_->all()) {
    const float* const gradient = gradient_values(*p);
    if (gradient != nullptr) sum += kernels().sum_squares(gradient, p->elements());
  }
  return std::sqrt(sum);
}

std::string Optimizer::first_bad_gradient() const {
  for (const auto& p : parameters_->all()) {
    if (p->grad().defined() && !kernels().all_finite(p->grad().rows())) return p->name();
  }
  return "";
}

void Optimizer::set_rate_factor(size_t parameter, double factor) {
  check(parameter < rate_factors_.size(), ErrorKind::shape,
        "there is no parameter {}; the optimizer has {}", parameter, rate_factors_.size());
  rate_factors_[parameter] = factor;
}

bool Optimizer::goes_by_muon(const nn::Parameter& p) const {
  return options_.is_muon && p.is_hidden_matrix();
}

void Optimizer::update(size_t parameter, float* gradient, double learning_rate, double grad_scale,
                       double ema_decay) {
  nn::Parameter& p = *parameters_->all()[parameter];
  Moments& m = moments_[parameter];
  const auto [begin, size] = ranges_[parameter];
  float* const w = p.value().data<float>() + begin;
  bf16* const shadow = p.shadow() == nullptr ? nullptr : p.shadow() + begin;
  const auto t = static_cast<double>(updates_);
  float* const ema = m.ema.defined() ? m.ema.data<float>() : nullptr;
  const float decay = p.decays() ? static_cast<float>(options_.weight_decay) : 0.0f;
  if (options_.is_sgd) {
    return kernels().sgd({.w = w,
                          .g = gradient,
                          .v = m.m.data<float>(),
                          .shadow = shadow,
                          .ema = ema,
                          .n = size,
                          .lr = static_cast<float>(learning_rate),
                          .momentum = static_cast<float>(options_.momentum),
                          .weight_decay = decay,
                          .grad_scale = static_cast<float>(grad_scale),
                          .ema_decay = static_cast<float>(ema_decay),
                          .nesterov = options_.nesterov,
                          .decoupled_decay = options_.decoupled_decay});
  }
  kernels().adam({.w = w,
                  .g = gradient,
                  .m = m.m.data<float>(),
                  .v = m.v.data<float>(),
                  .shadow = shadow,
                  .ema = ema,
                  .n = size,
                  .lr = static_cast<float>(learning_rate),
                  .beta1 = static_cast<float>(options_.beta1),
                  .beta2 = static_cast<float>(options_.beta2),
                  .eps = static_cast<float>(options_.eps),
                  .weight_decay = decay,
                  .bias_correction1 = static_cast<float>(1 - std::pow(options_.beta1, t)),
                  .bias_correction2 = static_cast<float>(1 - std::pow(options_.beta2, t)),
                  .grad_scale = static_cast<float>(grad_scale),
                  .ema_decay = static_cast<float>(ema_decay),
                  .decoupled_decay = options_.decoupled_decay});
}

void Optimizer::step(double learning_rate, double grad_scale) {
  std::vector<float*> gradients;
  for (size_t i = 0; i < ranges_.size(); ++i) {
    float* const gradient = gradient_values(*parameters_->all()[i]);
    gradients.push_back(gradient == nullptr ? nullptr : gradient + ranges_[i].begin);
  }
  std::vector<size_t> all(ranges_.size());
  std::iota(all.begin(), all.end(), size_t{0});
  begin_step();
  step(learning_rate, grad_scale, gradients, all);
}

void Optimizer::step(double learning_rate, double grad_scale, std::span<float* const> gradients,
                     std::span<const size_t> some) {
  const ProfilePhase phase("optimizer");
  const auto t = static_cast<double>(updates_);
  // Early updates would be averaged with the random start: the window grows with t.
  const double ema_decay = std::min(options_.ema_decay, (1 + t) / (10 + t));
  std::vector<MuonArgs> by_muon;
  for (const size_t i : some) {
    nn::Parameter& p = *parameters_->all()[i];
    Moments& m = moments_[i];
    if (ranges_[i].size == 0) continue;
    if (gradients[i] == nullptr) {  // the average goes on over what has not changed
      const float* const w = p.value().data<float>() + ranges_[i].begin;
      if (m.ema.defined()) average(m.ema, w, static_cast<float>(1 - ema_decay));
      continue;
    }
    const double rate = learning_rate * rate_factors_[i];
    if (goes_by_muon(p)) {
      by_muon.push_back({&p, gradients[i], m.m, m.ema, rate});
      continue;
    }
    update(i, gradients[i], rate, grad_scale, ema_decay);
    p.grad() = Tensor();
    p.changed(false);
  }
  muon_step(by_muon, {.momentum = options_.momentum,
                      .nesterov = options_.nesterov,
                      .weight_decay = options_.weight_decay,
                      .grad_scale = grad_scale,
                      .ema_decay = ema_decay});
  for (const MuonArgs& of : by_muon) {
    of.p->grad() = Tensor();
    of.p->changed(false);
  }
}

WeightSwap::WeightSwap(nn::Parameters& parameters, std::vector<Tensor> values)
    : parameters_(&parameters), values_(std::move(values)) {
  check(values_.size() == parameters.all().size(), ErrorKind::internal,
        "{} tensors cannot take the place of {} parameters", values_.size(),
        parameters.all().size());
  exchange();
}

WeightSwap::~WeightSwap() { exchange(); }

void WeightSwap::exchange() {
  for (size_t i = 0; i < values_.size(); ++i) {
    nn::Parameter& p = *parameters_->all()[i];
    float* const a = p.value().data<float>();
    std::swap_ranges(a, a + p.elements(), values_[i].data<float>());
    p.changed(true);
  }
}

double learning_rate(const ScheduleOptions& o, int64_t update) {
  const bool falls = o.kind == "cosine" || o.kind == "linear";
  const bool lasts = o.kind == "noam" || o.kind == "inverse_sqrt" || o.kind == "constant";
  check(falls || lasts, ErrorKind::usage,
        "there is no schedule '{}'; choose noam, inverse_sqrt, cosine, linear or constant", o.kind);
  check(!falls || o.max_updates > 0, ErrorKind::usage,
        "schedule {} falls until `max_updates`, which is {}; it must be at least 1", o.kind,
        o.max_updates);
  const auto t = static_cast<double>(std::max<int64_t>(1, update));
  const auto warmup = static_cast<double>(std::max<int64_t>(1, o.warmup));
  if (o.kind == "noam") {
    const double width = static_cast<double>(o.d_model);
    return o.learning_rate * std::pow(width, -0.5) *
           std::min(std::pow(t, -0.5), t * std::pow(warmup, -1.5));
  }
  if (o.kind == "inverse_sqrt") {
    return o.learning_rate * std::min(t / warmup, std::sqrt(warmup / t));
  }
  if (o.warmup > 0 && t < warmup) return o.learning_rate * t / warmup;
  if (o.kind == "constant") return o.learning_rate;
  const double whole = std::max(1.0, static_cast<double>(o.max_updates - o.warmup));
  const double done = std::clamp((t - static_cast<double>(o.warmup)) / whole, 0.0, 1.0);
  const double share =
      o.kind == "cosine" ? 0.5 * (1 + std::cos(std::numbers::pi * done)) : 1 - done;
  return o.min_learning_rate + (o.learning_rate - o.min_learning_rate) * share;
}

}  // namespace heddle::train
