// The shared set of blood cells, as it lies there.
#include <gtest/gtest.h>

#include <array>

#include "heddle/data/detections.h"
#include "tests/base/temporary.h"
#include "tests/support/places.h"

namespace heddle {
namespace {

TEST(DetectionData, blood_cells_have_their_boxes_but_the_flat_ones) {
  const TemporaryFolder folder;
  const DetectionSetOptions options{.path = std::string(testing::kData) + "/bccd",
                                    .cache_dir = folder / "cache",
                                    .cache_edge = 240,
                                    .class_names = {"RBC", "WBC", "Platelets"}};
  const DetectionSplit split = open_detection_split(options);
  EXPECT_EQ(split.train.size(), 205);
  EXPECT_EQ(split.val.size(), 87);
  EXPECT_EQ(split.train.most_boxes(), 28);
  const DetectionSet held =
      cached_detections(find_detections(options.path, options.class_names).test(), "test", options);
  EXPECT_EQ(held.size(), 72);
  std::array<int64_t, 3> counts = {};
  for (const DetectionSet& set : {split.train, split.val, held}) {
    for (int64_t i = 0; i < set.size(); ++i) {
      EXPECT_EQ(set.image(i).size, (ImageSize{240, 320}));
      for (const LabelledBox& box : set.boxes(i)) ++counts[static_cast<size_t>(box.label)];
    }
  }
  // 4,155 RBC in all, two of no area.
  EXPECT_EQ(counts, (std::array<int64_t, 3>{4153, 372, 361}));
}

}  // namespace
}  // namespace heddle
