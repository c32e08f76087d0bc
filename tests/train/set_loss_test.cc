// The loss of a detector: which queries are matched, where its floor is, and
// what is left out. Its values and gradients stand against transformers in
// tests/parity.
#include "heddle/train/tasks/images/set_loss.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "heddle/base/rng.h"
#include "heddle/vision/boxes.h"
#include "tests/base/temporary.h"

namespace heddle::train {
namespace {

// Logits of two classes and of no object, and a box, for each query.
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
  // The one that is matched costs its class alone: it is where it was seen.
  EXPECT_NEAR(set_loss(seen, 1, objects, matches, {}).item(), std::log(3.0), 1e-6);
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
  expect_error(ErrorKind::data, {"label 2", "2 classes"},
               [&] { match_objects(seen, 1, 1, objects, {}); });
}

// Three queries of two images, two layers, two classes with sigmoids.
class MatchabilityLoss : public ::testing::Test {
 protected:
  static constexpr int64_t kQueries = 3, kLayers = 2, kImages = 2;

  static ObjectPredictions seen() {
    RngStream random(make_key(4, 5, 6));
    std::vector<float> logits, boxes;
    for (int64_t row = 0; row < kLayers * kImages * kQueries; ++row) {
      for (int i = 0; i < 2; ++i) logits.push_back(4 * random.uniform() - 3);
      for (int i = 0; i < 4; ++i) boxes.push_back(0.2f + 0.5f * random.uniform());
    }
    const int64_t rows = std::ssize(boxes) / 4;
    return {Tensor::from(logits, {rows, 2}), Tensor::from(boxes, {rows, 4}), true};
  }
  static double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
  // The definition of the paper, over the classes of one row.
  static double loss_of(const ObjectPredictions& x, int64_t row, const ObjectTarget* object) {
    double sum = 0;
    for (int64_t c = 0; c < 2; ++c) {
      const double p = sigmoid(double{x.logits.data<float>()[row * 2 + c]});
      if (object == nullptr || object->label != c) {
        sum -= std::pow(p, 1.5) * std::log(1 - p);
        continue;
      }
      const double q =
          std::pow(iou(box(x.boxes.data<float>() + 4 * row), box(object->box.data())), 1.5);
      sum -= q * std::log(p) + (1 - q) * std::log(1 - p);
    }
    return sum;
  }
  static Box box(const float* b) {
    return Box::of_center(double{b[0]}, double{b[1]}, double{b[2]}, double{b[3]});
  }

  const BatchObjects objects_ = {{{1, {.5f, .4f, .3f, .4f}}, {0, {.3f, .5f, .4f, .3f}}},
                                 {{0, {.6f, .4f, .5f, .3f}}}};
  const SetLossWeights classes_alone_{
      .class_loss = "mal", .bbox_loss_coefficient = 0, .giou_loss_coefficient = 0};
};

TEST_F(MatchabilityLoss, equals_its_definition_divided_by_the_objects) {
  const ObjectPredictions x = seen();
  const auto matches = match_objects(x, kLayers, kQueries, objects_, classes_alone_);
  double all = 0;
  for (int64_t l = 0; l < kLayers; ++l) {
    double of_layer = 0;
    for (int64_t i = 0; i < kImages; ++i) {
      const auto& of_image = objects_[static_cast<size_t>(i)];
      const auto& found = matches[static_cast<size_t>(l)][static_cast<size_t>(i)];
      for (int64_t q = 0; q < kQueries; ++q) {
        const auto at = std::ranges::find(found, q) - found.begin();
        const bool has_object = at < std::ssize(found);
        of_layer += loss_of(x, (l * kImages + i) * kQueries + q,
                            has_object ? &of_image[static_cast<size_t>(at)] : nullptr);
      }
    }
    const SetLossSums sums =
        judge(x, l, kQueries, objects_, matches[static_cast<size_t>(l)], classes_alone_);
    EXPECT_NEAR(sums.loss(classes_alone_), of_layer / 3, 1e-6);
    all += of_layer / 3;
  }
  EXPECT_NEAR(set_loss(x, kQueries, objects_, matches, classes_alone_).item(), all, 1e-5);
}

TEST_F(MatchabilityLoss, objects_are_matched_by_the_sigmoid_of_their_class) {
  // Equal boxes; the first query's softmax is the surer of class 0, the second's sigmoid is.
  const ObjectPredictions x{Tensor::from(std::vector<float>{-2, -9, 1, 0}, {2, 2}),
                            Tensor::full({2, 4}, 0.5f), true};
  const BatchObjects objects = {{{0, {.5f, .5f, .5f, .5f}}}};
  EXPECT_EQ(match_objects(x, 1, 2, objects, classes_alone_)[0][0], std::vector<int64_t>{1});
  const SeenClass sure = likeliest_class(x, 1);
  EXPECT_EQ(sure.label, 0);
  EXPECT_NEAR(sure.probability, sigmoid(1), 1e-12);
  const ObjectPredictions broken{Tensor::from(std::vector<float>{0, NAN}, {1, 2}),
                                 Tensor::full({1, 4}, 0.5f), true};
  EXPECT_TRUE(std::isnan(likeliest_class(broken, 0).probability));
}

TEST_F(MatchabilityLoss, batch_without_objects_costs_what_its_queries_see) {
  const ObjectPredictions x = seen();
  const BatchObjects none(kImages);
  const auto matches = match_objects(x, kLayers, kQueries, none, classes_alone_);
  double all = 0;
  for (int64_t row = 0; row < kLayers * kImages * kQueries; ++row) all += loss_of(x, row, nullptr);
  EXPECT_NEAR(set_loss(x, kQueries, none, matches, classes_alone_).item(), all, 1e-5);
  double judged = 0;
  for (int64_t l = 0; l < kLayers; ++l) {
    judged += judge(x, l, kQueries, none, matches[static_cast<size_t>(l)], classes_alone_)
                  .loss(classes_alone_);
  }
  EXPECT_NEAR(judged, all, 1e-6);
}

TEST_F(MatchabilityLoss, label_beyond_the_sigmoids_is_a_data_error) {
  BatchObjects objects = objects_;
  objects[1][0].label = 2;
  EXPECT_THROW(match_objects(seen(), kLayers, kQueries, objects, classes_alone_), Error);
}

TEST_F(MatchabilityLoss, restored_objects_are_weighed_by_their_overlap) {
  const BatchObjects objects = {{{1, {.5f, .4f, .3f, .4f}}}};
  NoisedObjects noised{.groups = 1, .counts = {1}, .labels = {1}, .boxes = {{.5f, .4f, .3f, .4f}}};
  noised.restored = {Tensor::from(std::vector<float>{-1, 0.5f}, {1, 2}),
                     Tensor::from(std::vector<float>{.55f, .4f, .3f, .4f}, {1, 4}), true};
  EXPECT_NEAR(restoration_loss(noised, 1, objects, classes_alone_).item(),
              loss_of(noised.restored, 0, &objects[0][0]), 1e-6);
}

std::vector<RngKey> keys_of(size_t images) {
  std::vector<RngKey> keys;
  for (size_t i = 0; i < images; ++i) keys.push_back(make_key(7, 0, i));
  return keys;
}

TEST(Restoration, what_is_restored_exactly_costs_nothing) {
  const BatchObjects objects = {
      {{1, {.7f, .6f, .2f, .3f}}, {0, {.2f, .2f, .1f, .1f}}}, {}, {{1, {.5f, .5f, .4f, .2f}}}};
  NoisedObjects noised =
      with_noise(objects, keys_of(3), 2, {.groups = 2, .box_noise = 0, .label_noise = 0});
  EXPECT_THROW(with_noise(objects, keys_of(2), 2, {}), Error);
  EXPECT_EQ(noised.counts, (std::vector<int64_t>{2, 0, 1}));
  EXPECT_EQ(noised.labels, (std::vector<int32_t>{1, 0, 1, 0, 1, 1}));
  std::vector<float> logits, boxes;  // of two layers
  for (int layer = 0; layer < 2; ++layer) {
    for (size_t i = 0; i < noised.boxes.size(); ++i) {
      const bool is_first = noised.labels[i] == 0;
      logits.insert(logits.end(), {is_first ? 60.f : 0.f, is_first ? 0.f : 60.f, 0.f});
      boxes.insert(boxes.end(), noised.boxes[i].begin(), noised.boxes[i].end());
    }
  }
  noised.restored = predictions(logits, boxes);
  EXPECT_NEAR(restoration_loss(noised, 2, objects, {}).item(), 0, 1e-6);
  // All boxes are off by 0.1 in x: five times that a layer.
  SetLossWeights distance_alone{.giou_loss_coefficient = 0};
  for (size_t i = 0; i < boxes.size(); i += 4) boxes[i] += 0.1f;
  noised.restored = predictions(logits, boxes);
  EXPECT_NEAR(restoration_loss(noised, 2, objects, distance_alone).item(), 2 * 5 * 0.1, 1e-5);
}

TEST(Restoration, noise_stays_within_its_share_and_belongs_to_its_image) {
  const BatchObjects objects = {{{1, {.5f, .6f, .2f, .3f}}}, {{0, {.4f, .5f, .4f, .2f}}}};
  const std::vector<RngKey> keys = keys_of(2);
  const DenoisingWeights how{.groups = 200, .box_noise = 0.4, .label_noise = 0.5};
  const NoisedObjects noised = with_noise(objects, keys, 2, how);
  int64_t changed = 0;
  for (size_t i = 0; i < 400; ++i) {
    const ObjectTarget& own = objects[i / 200][0];
    changed += noised.labels[i] != own.label;
    for (size_t k = 0; k < 2; ++k) {
      const float edge = own.box[k + 2];
      EXPECT_LE(std::abs(noised.boxes[i][k] - own.box[k]), 0.2f * edge + 1e-6f);
      EXPECT_LE(std::abs(noised.boxes[i][k + 2] - edge), 0.4f * edge + 1e-6f);
    }
  }
  EXPECT_NEAR(static_cast<double>(changed) / 400, 0.25, 0.1);  // half of those that are drawn
  const NoisedObjects alone = with_noise({objects[1]}, {&keys[1], 1}, 2, how);
  EXPECT_EQ(alone.boxes, std::vector(noised.boxes.begin() + 200, noised.boxes.end()));
}

TEST(SetLoss, no_answer_that_is_the_same_for_all_images_is_below_the_floor) {
  // Seven objects of class 0 and three of class 1 in five images of four
  // queries: what the same logits for all queries cost at best.
  const std::vector<int64_t> counts = {7, 3};
  constexpr double kNone = 0.1;
  const double floor = class_loss_floor(counts, 5, 4, kNone);
  const auto cost = [&](double a, double b) {  // logits of the classes; that of none is 0
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
