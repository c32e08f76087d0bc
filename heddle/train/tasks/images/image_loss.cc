// Two heads, two targets, one sum.
#include "heddle/train/tasks/images/image_loss.h"

#include <algorithm>
#include <cmath>

#include "heddle/base/log_sum_exp.h"
#include "heddle/base/profile.h"
#include "heddle/ops/elementwise.h"
#include "heddle/ops/loss.h"

namespace heddle::train {
namespace {

Tensor smoothed(const Tensor& shares, float smoothing) {
  if (smoothing == 0) return shares;
  Tensor result = shares.clone();
  const float each = smoothing / static_cast<float>(shares.size(1));
  for (float& x : std::span(result.data<float>(), static_cast<size_t>(result.elements()))) {
    x = (1 - smoothing) * x + each;
  }
  return result;
}

// sum of t log t, with 0 log 0 = 0.
double minus_entropy(const Tensor& shares) {
  double sum = 0;
  for (const float t : std::span(shares.data<float>(), static_cast<size_t>(shares.elements()))) {
    if (t > 0) sum += t * std::log(static_cast<double>(t));
  }
  return sum;
}

// -sum of t log softmax(logits), the logits being the mean of both.
double cross_entropy_of_mean(const Tensor& a, const Tensor& b, const Tensor& shares) {
  std::vector<float> y = a.to_floats();
  const std::vector<float> other = b.to_floats();
  for (size_t i = 0; i < y.size(); ++i) y[i] = (y[i] + other[i]) / 2;
  const float* const t = shares.data<float>();
  const int64_t classes = shares.size(1);
  double total = 0;
  for (int64_t begin = 0; begin < std::ssize(y); begin += classes) {
    const double log_sum = log_sum_exp(std::span(y).subspan(begin, classes));
    for (int64_t i = begin; i < begin + classes; ++i) total -= t[i] * (y[i] - log_sum);
  }
  return total;
}

struct Term {
  Tensor loss;       // for backward()
  double value = 0;  // sum over the images
};

Term taught_term(const Tensor& logits, const ImageTargets& targets) {
  const double t = targets.temperature, weight = targets.teacher_weight;
  if (!targets.is_divergence) {
    const CrossEntropy ce = soft_cross_entropy(logits, targets.taught, static_cast<float>(weight));
    return {ce.loss, weight * ce.total};
  }
  const Tensor cooled = t == 1 ? logits : scale(logits, static_cast<float>(1 / t));
  const double factor = weight * t * t;
  const CrossEntropy ce = soft_cross_entropy(cooled, targets.taught, static_cast<float>(factor));
  return {ce.loss, factor * (ce.total + minus_entropy(targets.taught))};
}

}  // namespace

LossSums accumulate_images(const Model& model, const nn::ImageRows& images,
                           const ImageTargets& targets, const nn::Run& run) {
  const Heads& heads = model.heads();
  const bool has_two = static_cast<bool>(heads.own_classes);
  ImageTargets all = targets;
  const Tensor labels = smoothed(targets.labels, targets.smoothing);
  if (has_two && !all.taught.defined()) all.taught = labels, all.teacher_weight = 0.5;
  const double share = all.taught.defined() ? 1 - all.teacher_weight : 1;
  LossSums sums{.predicted = images.segments->count(), .tokens = images.segments->count()};
  Term sum;
  std::vector<Tensor> states;
  nn::Observer observer;  // recomputed layers ask it in the backward pass too
  nn::Run watched = run;
  if (all.imitation != nullptr) {
    observer = all.imitation->observer(states);
    watched.observer = &observer;
  }
  {
    const ProfilePhase phase("forward");
    const ModelInput input = images;
    const Tensor h = model.hidden(input, watched);
    const Tensor own = (has_two ? heads.own_classes : heads.sequence_classes)(h, input, run);
    const Tensor distilled = has_two ? heads.distilled_classes(h, input, run) : own;
    const CrossEntropy ce = soft_cross_entropy(own, labels, static_cast<float>(share));
    sum = {ce.loss, share * ce.total};
    if (all.taught.defined()) {
      const Term taught = taught_term(distilled, all);
      sum = {add(sum.loss, taught.loss), sum.value + taught.value};
    }
    if (all.imitation != nullptr) {
      const Imitation::Loss term = all.imitation->loss(states, h, all.features);
      sum = {add(sum.loss, term.loss), sum.value + term.value};
    }
    sums.nll = cross_entropy_of_mean(own, distilled, targets.labels);
  }
  const ProfilePhase phase("backward");
  sums.loss = sum.value;
  backward(sum.loss);
  return sums;
}

Tensor softened(std::span<const float> logits, int64_t classes, double temperature) {
  Tensor result = Tensor::empty({std::ssize(logits) / classes, classes}, DType::f32);
  float* const to = result.data<float>();
  for (int64_t begin = 0; begin < std::ssize(logits); begin += classes) {
    const std::span row = logits.subspan(static_cast<size_t>(begin), static_cast<size_t>(classes));
    const double most = *std::ranges::max_element(row);
    double sum = 0;
    for (const float y : row) sum += std::exp((y - most) / temperature);
    for (int64_t c = 0; c < classes; ++c) {
      to[begin + c] = static_cast<float>(std::exp((row[c] - most) / temperature) / sum);
    }
  }
  return result;
}

Tensor hardened(std::span<const float> logits, int64_t classes) {
  Tensor result = Tensor::zeros({std::ssize(logits) / classes, classes}, DType::f32);
  for (int64_t begin = 0; begin < std::ssize(logits); begin += classes) {
    const std::span row = logits.subspan(static_cast<size_t>(begin), static_cast<size_t>(classes));
    result.data<float>()[begin + (std::ranges::max_element(row) - row.begin())] = 1;
  }
  return result;
}

}  // namespace heddle::train
