// Drawn scenes as files, read back as a set.
#include "heddle/train/batches/scene_files.h"

#include <gtest/gtest.h>

#include "heddle/base/files/files.h"
#include "heddle/data/detections.h"
#include "tests/base/temporary.h"
#include "tests/data/image_sets.h"

namespace heddle::train {
namespace {

TEST(SceneFiles, scenes_are_read_back_with_their_boxes) {
  const TemporaryFolder folder;
  const auto draw = [](uint64_t i) { return draw_shapes({.size = {40, 56}}, 1, i); };
  for (const char* part : {"train", "val"}) {
    write_scenes({.folder = folder / "set",
                  .first = part[0] == 'v' ? 300 : 0,
                  .count = part[0] == 'v' ? 5 : 300,
                  .part = part,
                  .classes = shape_classes()},
                 draw);
  }
  const DetectionSplit split =
      open_detection_split({.path = folder / "set", .cache_dir = folder / "cache"});
  ASSERT_EQ(split.train.size(), 300);
  ASSERT_EQ(split.val.size(), 5);
  EXPECT_EQ(split.train.classes(), shape_classes());
  for (const int64_t i : {0, 255, 256, 299}) {
    const DrawnScene scene = draw(static_cast<uint64_t>(i));
    EXPECT_EQ(split.train.image(i).rgb(), scene.image);
    ASSERT_EQ(split.train.boxes(i).size(), scene.boxes.size());
    for (size_t b = 0; b < scene.boxes.size(); ++b) {
      EXPECT_EQ(split.train.boxes(i)[b].label, scene.boxes[b].label);
      EXPECT_GT(iou(split.train.boxes(i)[b].box, scene.boxes[b].box), 0.99);
    }
  }
  EXPECT_EQ(split.val.image(4).rgb(), draw(304).image);
}

TEST(SceneFiles, single_shapes_are_read_back_with_their_classes) {
  const TemporaryFolder folder;
  const auto draw = [](uint64_t i) { return draw_shape({.size = {24, 24}}, 1, i); };
  write_drawn_shapes(
      {.folder = folder / "set", .count = 30, .part = "train", .classes = shape_classes()}, draw);
  const ImageSet set =
      open_image_set({.path = folder / "set", .cache_dir = folder / "cache"}, shape_classes());
  ASSERT_EQ(set.size(), 30);
  EXPECT_TRUE(set.path(0).ends_with("train/circle/000001.png"));
  EXPECT_EQ(set.label(0), 0);
  EXPECT_EQ(set.image(0).rgb(), draw(0).image);
}

}  // namespace
}  // namespace heddle::train
