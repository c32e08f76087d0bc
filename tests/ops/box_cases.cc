// The cases of losses of boxes and of their classes, and of the sines of points.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "heddle/ops/elementwise.h"
#include "heddle/ops/images/boxes.h"
#include "heddle/ops/images/matchability.h"
#include "heddle/ops/images/sines.h"
#include "tests/ops/case_parts.h"
#include "tests/ops/definitions.h"

namespace heddle {
namespace {

// Normal numbers become boxes in the image: x / 16 + 1/2 in the middle, sizes of about 0.4.
constexpr float kScale = 0x1p-4f;

float shift(size_t i) { return i % 4 < 2 ? 0.5f : 0.4f; }

// Boxes of every kind against the proposed ones: inside, around, beside, apart, wide and high.
std::vector<float> truths(int64_t n) {
  const std::vector<float> some = {0.52f, 0.47f, 0.1f,  0.08f, 0.5f,  0.5f,  0.95f, 0.9f,
                                   0.7f,  0.31f, 0.33f, 0.5f,  0.05f, 0.06f, 0.07f, 0.09f,
                                   0.45f, 0.9f,  0.8f,  0.11f, 0.51f, 0.55f, 0.12f, 0.93f};
  std::vector<float> all;
  for (int64_t i = 0; i < 4 * n; ++i) all.push_back(some[i % some.size()]);
  return all;
}

Tensor boxes_of(const Tensor& x) {
  std::vector<float> shifts;
  for (int64_t i = 0; i < x.elements(); ++i) shifts.push_back(shift(i));
  return add(scale(x, kScale), Tensor::from(shifts, x.shape()));
}

double l1(const double* a, const double* b) {
  double sum = 0;
  for (int i = 0; i < 4; ++i) sum += std::fabs(a[i] - b[i]);
  return sum;
}

// By the definition: IoU less the share of the enclosing box that neither covers.
double giou_loss(const double* a, const double* b) {
  double shared = 1, hull = 1;
  for (int k = 0; k < 2; ++k) {
    const double a0 = a[k] - a[k + 2] / 2, a1 = a[k] + a[k + 2] / 2, b0 = b[k] - b[k + 2] / 2,
                 b1 = b[k] + b[k + 2] / 2;
    shared *= std::max(0.0, std::min(a1, b1) - std::max(a0, b0));
    hull *= std::max(a1, b1) - std::min(a0, b0);
  }
  const double all = a[2] * a[3] + b[2] * b[3] - shared;
  return 1 - (shared / all - (hull - all) / hull);
}

template <class F>
auto plain(const std::vector<float>& against, const F& loss) {
  return [=](const definition::Inputs& in) {
    definition::Doubles y;
    for (size_t i = 0; i < in[0].size(); i += 4) {
      double a[4], b[4];
      for (size_t k = 0; k < 4; ++k) {
        a[k] = double(in[0][i + k]) * kScale + shift(k);
        b[k] = against[i + k];
      }
      y.push_back(loss(a, b));
    }
    return y;
  };
}

// Rows of three classes, of which some have an object.
constexpr int64_t kClasses = 3;
const std::vector<int32_t> kLabels = {0, 2, -1, 1, -1, 2, 0};
const std::vector<float> kOverlaps = {0.9f, 0.3f, 0, 0, 0.5f, 1, 0.62f};

// Huang et al. 2024, equation (6): y = 1 of an object's class.
double matchability(double p, double q, bool y) {
  constexpr double kGamma = 1.5;
  if (!y) return -std::pow(p, kGamma) * std::log(1 - p);
  return -std::pow(q, kGamma) * std::log(p) - (1 - std::pow(q, kGamma)) * std::log(1 - p);
}

definition::Doubles plain_matchability(const definition::Inputs& in) {
  definition::Doubles y(kLabels.size());
  for (size_t i = 0; i < in[0].size(); ++i) {
    const size_t row = i / kClasses;
    const double p = 1 / (1 + std::exp(-double(in[0][i])));
    y[row] += matchability(p, kOverlaps[row], kLabels[row] == int32_t(i % kClasses));
  }
  return y;
}

// Waves of a number of a row, longer ones behind shorter ones.
constexpr int64_t kSineWidth = 6;
constexpr double kTemperature = 10000;

definition::Doubles plain_sines(const definition::Inputs& in) {
  definition::Doubles y;
  for (const float x : in[0]) {
    for (int64_t pair = 0; pair < kSineWidth / 2; ++pair) {
      const double wave = std::pow(kTemperature, 2.0 * double(pair) / double(kSineWidth));
      const double angle = 2 * std::numbers::pi * double(x * kScale) / wave;
      y.push_back(std::sin(angle)), y.push_back(std::cos(angle));
    }
  }
  return y;
}

}  // namespace

void add_box_cases(std::vector<OpCase>& all, const OpSizes&) {
  const int64_t pairs = 12;
  const Shape shape{pairs, 4};
  const Tensor against = Tensor::from(truths(pairs), shape);
  all.push_back(
      {.op = "box_l1",
       .variant = "pairs",
       .shapes = {shape},
       .function = [=](const Tensors& x) { return Tensors{box_l1(boxes_of(x[0]), against)}; },
       .plain = plain(truths(pairs), l1),
       .has_bf16 = false});
  all.push_back(
      {.op = "generalized_iou_loss",
       .variant = "pairs",
       .shapes = {shape},
       .function =
           [=](const Tensors& x) { return Tensors{generalized_iou_loss(boxes_of(x[0]), against)}; },
       .plain = plain(truths(pairs), giou_loss),
       .has_bf16 = false});
  all.push_back(
      {.op = "matchability_loss",
       .variant = "with_and_without_objects",
       .shapes = {{std::ssize(kLabels), kClasses}},
       .function =
           [](const Tensors& x) { return Tensors{matchability_loss(x[0], kLabels, kOverlaps)}; },
       .plain = plain_matchability,
       .has_bf16 = false});
  all.push_back({.op = "sines",
                 .variant = "points",
                 .shapes = {{7, 2}},
                 .function =
                     [](const Tensors& x) {
                       return Tensors{sines(scale(x[0], kScale), kSineWidth, kTemperature)};
                     },
                 .plain = plain_sines,
                 .has_bf16 = false});
}

}  // namespace heddle
