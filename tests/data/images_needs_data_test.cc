// The shared sets of images: CIFAR-10 as packed JPEG, MNIST.
#include <gtest/gtest.h>

#include <chrono>

#include "tests/data/image_files.h"
#include "tests/data/image_sets.h"

namespace heddle {
namespace {

TEST(ImageData, packed_jpeg_of_cifar_has_its_images_and_classes) {
  const TemporaryFolder folder;
  const std::string data = std::string(testing::kData) + "/cifar10";
  const ImageSplit split = open_image_split({.path = data, .cache_dir = folder / "cache"});
  EXPECT_EQ(split.train.size(), 50000);
  EXPECT_EQ(split.val.size(), 10000);
  EXPECT_EQ(split.train.labels()[9], "truck");
  for (const auto& images : split.train.by_label()) EXPECT_EQ(images.size(), 5000U);
  // The first 100 as Pillow decoded them, in CIFAR's own form.
  const ImageSet decoded = open_image_set(
      {.path = data + "/test_first100_decoded.bin.gz", .cache_dir = folder / "cache"});
  ASSERT_EQ(decoded.size(), 100);
  for (int64_t i = 0; i < 100; ++i) {
    ASSERT_EQ(split.val.image(i).rgb(), decoded.image(i).rgb()) << i;
    ASSERT_EQ(split.val.label(i), decoded.label(i)) << i;
  }
}

TEST(ImageData, mnist_is_grey_and_has_its_labels) {
  const TemporaryFolder folder;
  const ImageSplit split = open_image_split(
      {.path = std::string(testing::kData) + "/mnist", .cache_dir = folder / "cache"});
  EXPECT_EQ(split.train.size(), 20000);
  EXPECT_EQ(split.train.channels(), 1);
  EXPECT_EQ(split.train.image(0).size, (ImageSize{28, 28}));
  // Counts that everybody finds in the test set.
  const std::vector<size_t> counts = {980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009};
  for (size_t label = 0; label < 10; ++label) {
    EXPECT_EQ(split.val.by_label()[label].size(), counts[label]);
  }
  EXPECT_EQ(split.val.label(0), 7);
}

}  // namespace
}  // namespace heddle
