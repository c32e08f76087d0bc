// The loss of a detector: which queries are matched, where its floor is, and
// what is left out. Its values and gradients stand against transformers in
// tests/parity.
#include "heddle/train/tasks/set_loss.h"

#include <gtest/gtest.h>

#include <cmath>

#include "heddle/base/rng.h"
#include "heddle/vision/boxes.h"

namespace heddle::train {
namespace {

// Two queries, two classes and no object.
ObjectPredictions predictions(std::vector<float> logits, std::vector<float> boxes) {
  const auto rows = std::ssize(boxes) / 4;
  return {Tensor::from(logits, {rows, 3}), Tensor::from(boxes, {rows, 4})};
}

TEST(SetLoss, object_is_matched_with_the_query_that_sees_it) {
  const auto seen = predictions({9, 0, 0, 0, 9, 0}, {.2f, .2f, .1f, .1f, .7f, .7f, .2f, .2f});
  const BatchObjects objects = {{{1, {.7f, .7f, .2f, .2f}}, {0, {.2f, .2f, .1f, .1f}}}};
  const auto matches = match_objects(seen, 1, 2, objects, {});
  EXPECT_EQ(matches[0][0], (std::vector<int64_t>{1, 0}));
  const SetLossSums sums = judge(seen, 0, 2, objects, matches[0], {});
  EXPECT_EQ(sums.wrong, 0);
  EXPECT_NEAR(sums.loss({}), std::log(1 + 2 * std::exp(-9.0)), 1e-6);
}

TEST(SetLoss, more_objects_than_queries_leave_the_dearest_out) {
  const auto seen = predictions({0, 0, 0}, {.5f, .5f, .2f, .2f});
  const BatchObjects objects = {{{0, {.1f, .1f, .1f, .1f}}, {0, {.5f, .5f, .2f, .2f}}}};
  const auto matches = match_objects(seen, 1, 1, objects, {});
  EXPECT_EQ(matches[0][0], (std::vector<int64_t>{-1, 0}));
  EXPECT_TRUE(std::isfinite(set_loss(seen, 1, objects, matches, {}).item()));
}

TEST(SetLoss, image_without_objects_costs_classes_alone) {
  const auto seen = predictions({0, 0, 0, 0, 0, 0}, {.5f, .5f, .2f, .2f, .1f, .1f, .1f, .1f});
  const BatchObjects objects = {{}};
  const auto matches = match_objects(seen, 1, 2, objects, {});
  EXPECT_NEAR(set_loss(seen, 2, objects, matches, {}).item(), std::log(3.0), 1e-6);
}

TEST(SetLoss, queries_that_see_one_box_overlap_wholly) {
  const auto seen = predictions({0, 0, 0, 0, 0, 0}, {.5f, .5f, .2f, .2f, .5f, .5f, .2f, .2f});
  const BatchObjects objects = {{}};
  EXPECT_NEAR(judge(seen, 0, 2, objects, {{}}, {}, true).overlap, 1, 1e-9);
}

TEST(SetLoss, label_without_class_is_a_data_error) {
  const auto seen = predictions({0, 0, 0}, {.5f, .5f, .2f, .2f});
  const BatchObjects objects = {{{2, {.5f, .5f, .2f, .2f}}}};
  EXPECT_THROW(match_objects(seen, 1, 1, objects, {}), Error);
}

TEST(SetLoss, no_answer_that_is_the_same_for_all_images_is_below_the_floor) {
  // Seven objects of class 0 and three of class 1 in five images of four
  // queries: what the same logits for all queries cost at best.
  const std::vector<int64_t> counts = {7, 3};
  constexpr double kNone = 0.1;
  const double floor = class_loss_floor(counts, 5, 4, kNone);
  const auto cost = [&](double a,
                        double b) {  // logits of the classes; that of none is 0
    const double log_sum = std::log(std::exp(a) + std::exp(b) + 1);
    return (7 * (log_sum - a) + 3 * (log_sum - b) + 10 * kNone * log_sum) / (10 + 10 * kNone);
  };
  double best = 1e9;
  for (double a = -4; a < 4; a += 0.01) {
    for (double b = -4; b < 4; b += 0.01) best = std::min(best, cost(a, b));
  }
  EXPECT_LE(floor, best + 1e-9);
  EXPECT_NEAR(floor, best, 1e-4);
}

}  // namespace
}  // namespace heddle::train
