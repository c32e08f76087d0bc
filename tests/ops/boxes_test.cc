// Losses of boxes against torchvision's, in double.
#include <gtest/gtest.h>

#include "heddle/ops/images/boxes.h"
#include "heddle/ops/images/matchability.h"
#include "heddle/ops/reduce.h"
#include "tests/base/temporary.h"

namespace heddle {
namespace {

// Apart, around the truth, nearly equal.
const std::vector<float> kBoxes = {0.2f,  0.3f, 0.1f, 0.5f,  0.9f, 0.9f,
                                   0.15f, 0.1f, 0.4f, 0.45f, 0.6f, 0.7f};
const std::vector<float> kTruths = {0.8f,  0.7f,  0.2f, 0.2f,  0.9f,  0.9f,
                                    0.05f, 0.04f, 0.4f, 0.45f, 0.61f, 0.69f};

TEST(BoxLosses, equal_torchvision) {
  Leaf leaf;
  const Tensor boxes = Tensor::from(kBoxes, {3, 4}).with_leaf(&leaf);
  const Tensor truths = Tensor::from(kTruths, {3, 4});
  const Tensor loss = generalized_iou_loss(boxes, truths);
  const std::vector<double> want = {1.84, 0.8666666666666665, 0.030452041650963713};
  for (size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(loss.to_floats()[i], want[i], 1e-6);
  backward(dot(loss, Tensor::full({3}, 1)));
  // Of torchvision's generalized_box_iou_loss(eps=0) by autograd.
  const std::vector<double> slopes = {-0.21333333333,
                                      -0.21333333333,
                                      -0.78222222222,
                                      -0.07111111111,
                                      0,
                                      0,
                                      0.88888888889,
                                      1.33333333333,
                                      0,
                                      0,
                                      -1.61700594,
                                      1.38609540};
  const std::vector<float> got = leaf.grad.to_floats();
  for (size_t i = 0; i < slopes.size(); ++i) EXPECT_NEAR(got[i], slopes[i], 2e-6) << i;
}

TEST(BoxLosses, boxes_of_no_area_have_no_gradient_that_is_no_number) {
  Leaf leaf;
  const std::vector<float> point = {0.5f, 0.5f, 0, 0};
  const Tensor boxes = Tensor::from(point, {1, 4}).with_leaf(&leaf);
  const Tensor loss = generalized_iou_loss(boxes, Tensor::from(point, {1, 4}));
  EXPECT_EQ(loss.to_floats()[0], 1);
  backward(dot(loss, Tensor::full({1}, 1)));
  for (const float d : leaf.grad.to_floats()) EXPECT_EQ(d, 0);
}

TEST(MatchabilityLoss, any_logit_has_a_finite_loss_and_slope) {
  Leaf leaf;
  const Tensor logits =
      Tensor::from(std::vector<float>{-1000, 1000, 1000, -1000}, {2, 2}).with_leaf(&leaf);
  const Tensor loss =
      matchability_loss(logits, std::vector<int32_t>{0, -1}, std::vector<float>{1, 0});
  // The object's class is missed by 1000, and a class that is none's seen by as much.
  EXPECT_EQ(loss.to_floats(), (std::vector<float>{2000, 1000}));
  backward(dot(loss, Tensor::full({2}, 1)));
  EXPECT_EQ(leaf.grad.to_floats(), (std::vector<float>{-1, 1, 1, 0}));
}

TEST(MatchabilityLoss, labels_and_sizes_that_do_not_fit_are_refused) {
  const Tensor logits = Tensor::zeros({1, 2}, DType::f32);
  expect_error(ErrorKind::data, {"label 2", "2 classes"},
               [&] { matchability_loss(logits, std::vector<int32_t>{2}, std::vector<float>{1}); });
  expect_error(ErrorKind::shape, {"0 overlaps"},
               [&] { matchability_loss(logits, std::vector<int32_t>{1}, {}); });
}

TEST(BoxLosses, other_shapes_are_refused) {
  expect_error(ErrorKind::shape, {"[n, 4]"}, [] {
    box_l1(Tensor::zeros({2, 4}, DType::f32), Tensor::zeros({3, 4}, DType::f32));
  });
}

}  // namespace
}  // namespace heddle
