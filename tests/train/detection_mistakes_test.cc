// Which objects a detector misses, which of its boxes are wrong, and which images are the worst.
#include "heddle/train/metrics/detection_mistakes.h"

#include <gtest/gtest.h>

namespace heddle::train {
namespace {

using Flags = std::vector<bool>;

LabelledBox truth(double x, int32_t label = 0, bool is_crowd = false) {
  return {.box = {x, 0, x + 10, 10}, .label = label, .is_crowd = is_crowd};
}
ScoredBox seen(double x, double score, int32_t label = 0) {
  return {.box = {x, 0, x + 10, 10}, .label = label, .score = score};
}

TEST(DetectionMistakes, boxes_below_one_half_and_of_another_class_find_nothing) {
  const DetectionMistakes found =
      mistakes_of({.truths = {truth(0), truth(20), truth(40)},
                   .found = {seen(40, 0.5), seen(20, 0.499), seen(0, 0.9, 1)}});
  EXPECT_EQ(found.is_missed, (Flags{true, true, false}));
  ASSERT_EQ(found.sure.size(), 2U);
  EXPECT_EQ(found.sure[0].score, 0.9);  // the surest first
  EXPECT_EQ(found.is_wrong, (Flags{true, false}));
  EXPECT_EQ(found.missed(), 2);
  EXPECT_EQ(found.wrong(), 1);
}

// Boxes of 10 x 10 that are 10 / 3 apart share 20 / 3 of 40 / 3: exactly half.
TEST(DetectionMistakes, an_object_is_found_from_one_half_of_the_union_on) {
  for (const auto& [shift, is_found] : {std::pair(3.3, true), std::pair(3.4, false)}) {
    const DetectionMistakes one = mistakes_of({.truths = {truth(0)}, .found = {seen(shift, 0.9)}});
    EXPECT_EQ(one.missed(), is_found ? 0 : 1) << shift;
    EXPECT_EQ(one.wrong(), is_found ? 0 : 1) << shift;
  }
}

// The surest takes the nearer of two, and what is left to the next is the other; a third is wrong.
TEST(DetectionMistakes, an_object_has_one_box_the_surest_chooses) {
  const DetectionMistakes found = mistakes_of(
      {.truths = {truth(0), truth(3)}, .found = {seen(1, 0.6), seen(2, 0.9), seen(2, 0.7)}});
  EXPECT_EQ(found.is_missed, (Flags{false, false}));
  EXPECT_EQ(found.is_wrong, (Flags{false, false, true}));
  EXPECT_EQ(found.sure[2].score, 0.6);
  // Between equals the first object: what only it could be is then missed.
  const DetectionMistakes equal =
      mistakes_of({.truths = {truth(2), truth(-2)}, .found = {seen(0, 0.9)}});
  EXPECT_EQ(equal.is_missed, (Flags{false, true}));
}

TEST(DetectionMistakes, crowds_are_not_missed_and_boxes_in_them_not_wrong) {
  LabelledBox crowd = truth(0, 0, true);
  crowd.box.x1 = 100;
  const DetectionMistakes found = mistakes_of(
      {.truths = {crowd, truth(200)}, .found = {seen(50, 0.9), seen(60, 0.8, 1), seen(96, 0.7)}});
  EXPECT_EQ(found.truths, std::vector<LabelledBox>{truth(200)});
  EXPECT_EQ(found.is_missed, Flags{true});
  EXPECT_EQ(found.is_wrong, (Flags{false, true, true}));  // of another class; out of it by 6 of 10
}

TEST(DetectionMistakes, worst_images_have_most_wrong_and_of_equals_the_first) {
  const std::vector<DetectedImage> images = {
      {.id = 9, .truths = {truth(0)}, .found = {seen(0, 0.9)}},                 // nothing
      {.id = 8, .truths = {truth(0)}, .found = {}},                             // 1
      {.id = 7, .truths = {truth(0)}, .found = {seen(0, 0.9, 1)}},              // 2
      {.id = 6, .truths = {}, .found = {seen(0, 0.9)}},                         // 1
      {.id = 5, .truths = {truth(0), truth(20)}, .found = {}},                  // 2
      {.id = 4, .truths = {truth(0)}, .found = {seen(0, 0.9), seen(30, 0.1)}},  // nothing
  };
  const auto numbers = [&](size_t most) {
    std::vector<int64_t> all;
    for (const DetectionMistakes& one : worst_detections(images, most)) all.push_back(one.image);
    return all;
  };
  EXPECT_EQ(numbers(10), (std::vector<int64_t>{2, 4, 1, 3}));
  EXPECT_EQ(numbers(3), (std::vector<int64_t>{2, 4, 1}));
  EXPECT_TRUE(worst_detections({}, 3).empty());
}

}  // namespace
}  // namespace heddle::train
