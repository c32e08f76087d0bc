// Box losses in plain loops: there are tens of pairs an image.
#include "heddle/ops/images/boxes.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "heddle/base/error.h"

namespace heddle {
namespace {

constexpr int64_t kNumbers = 4;

void check_pairs(const char* name, const Tensor& boxes, const Tensor& truths) {
  const bool fits = boxes.rank() == 2 && boxes.size(1) == kNumbers &&
                    truths.shape() == boxes.shape() && boxes.dtype() == DType::f32 &&
                    truths.dtype() == DType::f32;
  check(fits, ErrorKind::shape,
        "{}: the boxes are {} {}, the truths {} {}; both must be [n, 4] f32", name, boxes.shape(),
        dtype_name(boxes.dtype()), truths.shape(), dtype_name(truths.dtype()));
}

// A loss and its slopes by the four numbers of the proposed box.
struct PairLoss {
  double loss = 0;
  std::array<double, 4> slopes = {};
};

PairLoss l1_of(const float* box, const float* truth) {
  PairLoss result;
  for (size_t i = 0; i < 4; ++i) {
    const double d = double{box[i]} - double{truth[i]};
    result.loss += std::abs(d);
    result.slopes[i] = d > 0 ? 1 : d < 0 ? -1 : 0;
  }
  return result;
}

// What two boxes share and what encloses them along one axis, with the slopes by the proposed one's
// lower and upper end.
struct AxisOverlap {
  double shared = 0, shared_low = 0, shared_high = 0;
  double hull = 0, hull_low = 0, hull_high = 0;

  AxisOverlap(double low, double high, double truth_low, double truth_high) {
    shared = std::min(high, truth_high) - std::max(low, truth_low);
    if (shared <= 0) {
      shared = 0;
    } else {
      shared_low = low > truth_low ? -1 : 0;
      shared_high = high < truth_high ? 1 : 0;
    }
    hull = std::max(high, truth_high) - std::min(low, truth_low);
    hull_low = low < truth_low ? -1 : 0;
    hull_high = high > truth_high ? 1 : 0;
  }
};

// 2 - shared / all - all / hull, where `all` is what either covers.
PairLoss giou_loss_of(const float* box, const float* truth) {
  const double w = box[2], h = box[3], tw = truth[2], th = truth[3];
  const AxisOverlap x(box[0] - w / 2, box[0] + w / 2, truth[0] - tw / 2, truth[0] + tw / 2),
      y(box[1] - h / 2, box[1] + h / 2, truth[1] - th / 2, truth[1] + th / 2);
  const double shared = x.shared * y.shared, all = w * h + tw * th - shared, hull = x.hull * y.hull;
  if (all <= 0 || hull <= 0) return {.loss = 1};
  PairLoss result{.loss = 2 - shared / all - all / hull};
  // By an end of the box, from the slopes of the three areas by it.
  const auto slope = [&](double d_shared, double d_own, double d_hull) {
    const double d_all = d_own - d_shared;
    return -(d_shared / all - shared * d_all / (all * all) + d_all / hull -
             all * d_hull / (hull * hull));
  };
  const double left = slope(x.shared_low * y.shared, -h, x.hull_low * y.hull),
               right = slope(x.shared_high * y.shared, h, x.hull_high * y.hull),
               top = slope(y.shared_low * x.shared, -w, y.hull_low * x.hull),
               bottom = slope(y.shared_high * x.shared, w, y.hull_high * x.hull);
  result.slopes = {left + right, top + bottom, (right - left) / 2, (bottom - top) / 2};
  return result;
}

template <class F>
Tensor pair_losses(const char* name, const Tensor& boxes, const Tensor& truths, const F& loss_of) {
  check_pairs(name, boxes, truths);
  const int64_t n = boxes.size(0);
  const Tensor x = boxes.to_contiguous(), t = truths.to_contiguous();
  Tensor y = Tensor::empty({n}, DType::f32);
  const Tensor slopes = needs_grad({&boxes}) ? Tensor::empty({n, kNumbers}, DType::f32) : Tensor();
  for (int64_t i = 0; i < n; ++i) {
    const PairLoss pair = loss_of(x.data<float>() + i * kNumbers, t.data<float>() + i * kNumbers);
    y.data<float>()[i] = static_cast<float>(pair.loss);
    if (!slopes.defined()) continue;
    for (int64_t k = 0; k < kNumbers; ++k) {
      slopes.data<float>()[i * kNumbers + k] = static_cast<float>(pair.slopes[k]);
    }
  }
  return record(name, {boxes}, y, [slopes, n](const Tensor& dy) -> Grads {
    const Tensor dx = Tensor::empty({n, kNumbers}, DType::f32), d = dy.to_contiguous();
    for (int64_t i = 0; i < n * kNumbers; ++i) {
      dx.data<float>()[i] = slopes.data<float>()[i] * d.data<float>()[i / kNumbers];
    }
    return {dx};
  });
}

}  // namespace

Tensor box_l1(const Tensor& boxes, const Tensor& truths) {
  return pair_losses("box_l1", boxes, truths, l1_of);
}

Tensor generalized_iou_loss(const Tensor& boxes, const Tensor& truths) {
  return pair_losses("generalized_iou_loss", boxes, truths, giou_loss_of);
}

}  // namespace heddle
