// Boxes: overlaps of known boxes, and what resizing does to them.
#include "heddle/vision/boxes.h"

#include <gtest/gtest.h>

namespace heddle {
namespace {

TEST(Boxes, overlap_is_the_shared_area_over_all) {
  const Box a{0, 0, 4, 2}, b{2, 1, 6, 3};
  EXPECT_DOUBLE_EQ(iou(a, b), 2.0 / 14);
  EXPECT_DOUBLE_EQ(iou(a, a), 1);
  EXPECT_DOUBLE_EQ(iou(a, {4, 0, 5, 2}), 0);             // they touch
  EXPECT_DOUBLE_EQ(iou({1, 1, 1, 1}, {1, 1, 1, 1}), 0);  // no area
  EXPECT_DOUBLE_EQ(iou({3, 3, 1, 1}, {0, 0, 4, 4}), 0);  // corners in the wrong order
}

TEST(Boxes, generalized_overlap_falls_with_the_distance_of_boxes_apart) {
  // The enclosing box has 18 of area, 14 of them are covered.
  EXPECT_DOUBLE_EQ(generalized_iou({0, 0, 4, 2}, {2, 1, 6, 3}), 2.0 / 14 - 4.0 / 18);
  EXPECT_DOUBLE_EQ(generalized_iou({0, 0, 1, 1}, {0, 0, 1, 1}), 1);
  EXPECT_DOUBLE_EQ(generalized_iou({0, 0, 1, 1}, {9, 0, 10, 1}), -0.8);
  EXPECT_DOUBLE_EQ(generalized_iou({2, 2, 2, 2}, {2, 2, 2, 2}), 0);
}

TEST(Boxes, forms_give_the_same_corners) {
  EXPECT_EQ(Box::of_center(3, 5, 4, 2), (Box{1, 4, 5, 6}));
  EXPECT_EQ(Box::of_corner(1, 4, 4, 2), (Box{1, 4, 5, 6}));
  EXPECT_EQ(resized(Box{1, 4, 5, 6}, {.height = 8, .width = 10}, {.height = 4, .width = 30}),
            (Box{3, 2, 15, 3}));
  EXPECT_EQ(clipped({-3, 2, 20, 9}, {.height = 8, .width = 10}), (Box{0, 2, 10, 8}));
}

}  // namespace
}  // namespace heddle
