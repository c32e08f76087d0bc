// Losses of logits by softplus, log(1 + e^x), which no logit makes infinite.
#include "heddle/ops/images/matchability.h"

#include <algorithm>
#include <cmath>

#include "heddle/base/error.h"

namespace heddle {
namespace {

constexpr double kGamma = 1.5;

double softplus(double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x))); }

// A class's part of the loss and its slope by the logit.
struct LogitLoss {
  double loss, slope;
};

LogitLoss object_loss(double x, double overlap) {
  const double target = std::pow(overlap, kGamma);
  return {target * softplus(-x) + (1 - target) * softplus(x), 1 / (1 + std::exp(-x)) - target};
}

LogitLoss other_loss(double x) {
  const double p = 1 / (1 + std::exp(-x)), rest = softplus(x), factor = std::pow(p, kGamma);
  return {factor * rest, factor * (p + kGamma * (1 - p) * rest)};
}

LogitLoss class_loss(double x, bool is_object, double overlap) {
  return is_object ? object_loss(x, overlap) : other_loss(x);
}

void check_rows(const Tensor& logits, std::span<const int32_t> labels,
                std::span<const float> overlaps) {
  check(logits.rank() == 2 && logits.dtype() == DType::f32 &&
            std::ssize(labels) == logits.size(0) && overlaps.size() == labels.size(),
        ErrorKind::shape, "matchability_loss: logits are {} {}, with {} labels and {} overlaps",
        logits.shape(), dtype_name(logits.dtype()), labels.size(), overlaps.size());
  for (const int32_t label : labels) {
    check(label >= -1 && label < logits.size(1), ErrorKind::data,
          "an object has the label {}; the model has {} classes", label, logits.size(1));
  }
}

}  // namespace

double matchability_of_row(std::span<const float> logits, int32_t label, double overlap) {
  double sum = 0;
  for (int64_t c = 0; c < std::ssize(logits); ++c) {
    sum +=
        class_loss(static_cast<double>(logits[static_cast<size_t>(c)]), c == label, overlap).loss;
  }
  return sum;
}

Tensor matchability_loss(const Tensor& logits, std::span<const int32_t> labels,
                         std::span<const float> overlaps) {
  check_rows(logits, labels, overlaps);
  const int64_t rows = logits.size(0), classes = logits.size(1);
  const Tensor x = logits.to_contiguous();
  const Tensor y = Tensor::empty({rows}, DType::f32);
  const Tensor slopes = needs_grad({&logits}) ? empty_like(x) : Tensor();
  for (int64_t r = 0; r < rows; ++r) {
    const auto at = static_cast<size_t>(r);
    double sum = 0;
    for (int64_t c = 0; c < classes; ++c) {
      const LogitLoss one = class_loss(static_cast<double>(x.data<float>()[r * classes + c]),
                                       c == labels[at], static_cast<double>(overlaps[at]));
      sum += one.loss;
      if (slopes.defined()) {
        slopes.data<float>()[r * classes + c] = static_cast<float>(one.slope);
      }
    }
    y.data<float>()[r] = static_cast<float>(sum);
  }
  return record("matchability_loss", {logits}, y,
                [slopes, rows, classes](const Tensor& dy) -> Grads {
                  const Tensor dx = Tensor::empty({rows, classes}, DType::f32);
                  const Tensor d = dy.to_contiguous();
                  for (int64_t i = 0; i < rows * classes; ++i) {
                    dx.data<float>()[i] = slopes.data<float>()[i] * d.data<float>()[i / classes];
                  }
                  return {dx};
                });
}

}  // namespace heddle
