// IDX files, CIFAR's binaries and packed JPEG: what they hold, and files that do not.
#include <gtest/gtest.h>

#include "heddle/vision/resize.h"
#include "tests/data/image_files.h"
#include "tests/data/image_sets.h"

namespace heddle {
namespace {

using testing::counting;
using testing::idx_file;
using testing::image_file;
using testing::jpack_file;

ImageSetOptions options_of(const TemporaryFolder& folder, const std::string& path = "") {
  return {.path = path.empty() ? folder.path() : folder / path, .cache_dir = folder / "cache"};
}

void refuse(const TemporaryFolder& folder, const std::vector<std::string>& words) {
  expect_error(ErrorKind::data, words, [&] { open_image_split(options_of(folder)); });
}

TEST(Idx, images_are_grey_and_labels_numbers_compressed_or_not) {
  const TemporaryFolder folder;
  folder.write("train-images-idx3-ubyte", idx_file({3, 2, 4}, counting(24)));
  folder.write("train-labels-idx1-ubyte", idx_file({3}, std::string("\x02\x00\x02", 3)));
  testing::write_gzip(folder / "t10k-images-idx3-ubyte.gz", idx_file({1, 5, 1}, counting(5, 250)));
  testing::write_gzip(folder / "t10k-labels-idx1-ubyte.gz", idx_file({1}, "\x02"));
  const ImageSplit split = open_image_split(options_of(folder));
  EXPECT_EQ(split.train.labels(), (std::vector<std::string>{"0", "1", "2"}));
  ASSERT_EQ(split.train.size(), 3);
  EXPECT_EQ(split.train.channels(), 1);
  EXPECT_EQ(split.train.label(0), 2);
  EXPECT_EQ(split.train.label(1), 0);
  EXPECT_EQ(split.train.path(1), folder / "train-images-idx3-ubyte: image 1");
  const ImageView view = split.train.image(1);
  EXPECT_EQ(view.size, (ImageSize{2, 4}));
  EXPECT_EQ(view.channels, 1);
  EXPECT_EQ(std::string(view.pixels, view.pixels + 8), counting(8, 8));
  EXPECT_EQ(view.rgb().pixels[23], 15);
  EXPECT_EQ(view.rgb().pixels[20], 14);
  ASSERT_EQ(split.val.size(), 1);
  EXPECT_EQ(split.val.label(0), 2);
  EXPECT_EQ(split.val.image(0).size, (ImageSize{5, 1}));
}

TEST(Idx, grey_images_are_shrunk_as_such) {
  const TemporaryFolder folder;
  const std::string images = folder.write("x-images-ubyte", idx_file({2, 8, 8}, counting(128)));
  folder.write("x-labels-ubyte", idx_file({2}, std::string("\x01\x00", 2)));
  ImageSetOptions options = options_of(folder, "x-images-ubyte");
  const Image whole = open_image_set(options).image(1).rgb();
  options.cache_edge = 3;
  const ImageSet small = open_image_set(options);
  EXPECT_EQ(small.channels(), 1);
  EXPECT_EQ(small.image(1).size, (ImageSize{3, 3}));
  EXPECT_EQ(small.image(1).rgb(), resize(whole, 3, 3, Resample::bilinear));
}

TEST(Idx, files_that_do_not_fit_are_refused_by_name) {
  const TemporaryFolder folder;
  const auto write = [&](const std::string& images, const std::string& labels) {
    folder.write("train-images-idx3-ubyte", images);
    folder.write("train-labels-idx1-ubyte", labels);
  };
  const std::string images = idx_file({3, 2, 4}, counting(24)),
                    labels = idx_file({3}, std::string("\x02\x00\x02", 3));
  folder.write("train-images-idx3-ubyte", images);
  refuse(folder, {"train-labels-idx1-ubyte"});
  write(images.substr(0, 39), labels);
  refuse(folder, {"train-images", "3 x 2 x 4", "23 bytes", "cut short"});
  write(images + "x", labels);
  refuse(folder, {"3 x 2 x 4", "25 bytes"});
  write(images, idx_file({2}, counting(2)));
  refuse(folder, {"3 images", "2 labels"});
  write(labels, labels);
  refuse(folder, {"train-images", "3 dimensions"});
  write(images.substr(0, 9), labels);
  refuse(folder, {"train-images", "3 dimensions"});
  write("", labels);
  refuse(folder, {"train-images", "3 dimensions"});
  write(idx_file({0x80000000, 0x80000000, 0x80000000}, "x"), labels);
  refuse(folder, {"2147483648 x 2147483648", "1 bytes"});
  write(idx_file({3, 0, 4}, ""), labels);
  refuse(folder, {"3 x 0 x 4"});
}

// A record of CIFAR: labels, then three planes of one level each.
std::string record(const std::string& labels, int red, int green, int blue) {
  return labels + std::string(1024, static_cast<char>(red)) +
         std::string(1024, static_cast<char>(green)) + std::string(1024, static_cast<char>(blue));
}

TEST(Cifar, batches_follow_each_other_and_planes_become_pixels) {
  const TemporaryFolder folder;
  folder.write("data_batch_2.bin", record("\x01", 7, 8, 9));
  folder.write("data_batch_1.bin",
               record(std::string(1, '\0'), 1, 2, 255) + record("\x02", 4, 5, 6));
  folder.write("test_batch.bin", record("\x02", 10, 11, 12));
  folder.write("batches.meta.txt", "plane\ncar\nbird \n\n");
  const ImageSplit split = open_image_split(options_of(folder));
  EXPECT_EQ(split.train.labels(), (std::vector<std::string>{"plane", "car", "bird"}));
  ASSERT_EQ(split.train.size(), 3);
  EXPECT_EQ(split.train.label(1), 2);
  EXPECT_EQ(split.train.path(2), folder / "data_batch_2.bin: image 0");
  const Image image = split.train.image(0).rgb();
  EXPECT_EQ(image.size(), (ImageSize{32, 32}));
  for (size_t i = 0; i < image.pixels.size(); i += 3) {
    ASSERT_EQ(image.pixels[i], 1);
    ASSERT_EQ(image.pixels[i + 1], 2);
    ASSERT_EQ(image.pixels[i + 2], 255);
  }
  EXPECT_EQ(split.val.size(), 1);
  std::string ordered = "\x01";
  for (int i = 0; i < 3; ++i) ordered += counting(1024, i);
  folder.write("data_batch_2.bin", ordered);
  const ImageSplit again = open_image_split(options_of(folder));
  EXPECT_EQ(again.train.image(2).pixels[3 * 100 + 1], 101);
  EXPECT_NE(again.train.key(), split.train.key());
}

TEST(Cifar, of_two_labels_the_fine_one_counts) {
  const TemporaryFolder folder;
  folder.write("train.bin",
               record("\x03\x63", 1, 2, 3) + record(std::string("\x01\x00", 2), 1, 2, 3));
  folder.write("test.bin", record("\x03\x63", 1, 2, 3));
  const ImageSplit split = open_image_split(options_of(folder));
  EXPECT_EQ(split.train.labels().size(), 100U);
  EXPECT_EQ(split.train.label(0), 99);
  EXPECT_EQ(split.train.label(1), 0);
}

TEST(Cifar, cut_files_and_labels_without_a_name_are_refused) {
  const TemporaryFolder folder;
  folder.write("data_batch_1.bin", record("\x01", 7, 8, 9) + record("\x0a", 7, 8, 9));
  refuse(folder, {"data_batch_1.bin: image 1", "label 10", "10 classes"});
  folder.write("batches.meta.txt", "plane\n");
  refuse(folder, {"data_batch_1.bin: image 0", "label 1", "1 classes"});
  folder.write("data_batch_1.bin", record("\x01", 7, 8, 9).substr(1));
  refuse(folder, {"data_batch_1.bin", "3072 bytes", "cut short"});
  folder.write("data_batch_1.bin", record("\x01\x01", 7, 8, 9));
  refuse(folder, {"data_batch_1.bin", "3074 bytes"});
  folder.write("data_batch_1.bin", "");
  refuse(folder, {"data_batch_1.bin", "0 bytes"});
}

// What the fixtures 420 and progressive share is the mark of their beginning.
struct PackFolder : TemporaryFolder {
  std::string rest = image_file("420.jpg").substr(2), other = image_file("422.jpg").substr(2);
  std::string pack = jpack_file({{0, rest}, {1, other}, {1, "damaged"}, {0, other}});
  PackFolder() {
    write("jpeg_header.bin", image_file("420.jpg").substr(0, 2));
    write("classes.txt", "frog\ntruck\n");
    write("train.jpack", pack);
  }
};

TEST(Jpack, images_are_those_of_the_files_and_damaged_ones_left_out) {
  const PackFolder folder;
  folder.write("test.jpack", jpack_file({{1, folder.rest}}));
  ::testing::internal::CaptureStderr();
  const ImageSplit split = open_image_split(options_of(folder));
  const std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("1 image that cannot be read"), std::string::npos) << said;
  EXPECT_NE(said.find("train.jpack: image 2"), std::string::npos) << said;
  EXPECT_EQ(split.train.labels(), (std::vector<std::string>{"frog", "truck"}));
  ASSERT_EQ(split.train.size(), 3);
  EXPECT_EQ(split.train.path(2), folder / "train.jpack: image 3");
  const std::string folder_of_images = std::string(testing::kFixtures) + "/images/";
  EXPECT_EQ(split.train.image(0).rgb(), read_image(folder_of_images + "420.jpg"));
  EXPECT_EQ(split.train.image(1).rgb(), read_image(folder_of_images + "422.jpg"));
  EXPECT_EQ(split.train.label(1), 1);
  EXPECT_EQ(split.val.label(0), 1);
  EXPECT_EQ(open_image_set(options_of(folder, "train.jpack")).size(), 3);
}

TEST(Jpack, every_cut_and_each_wrong_number_is_refused) {
  const PackFolder folder;
  for (size_t size = 0; size < folder.pack.size(); size += 13) {
    folder.write("train.jpack", folder.pack.substr(0, size));
    refuse(folder, {"train.jpack"});
  }
  folder.write("train.jpack", jpack_file({}));
  refuse(folder, {"none of 0 images"});
  folder.write("train.jpack", folder.pack + "x");
  refuse(folder, {"train.jpack", "1 bytes", "last of 4"});
  folder.write("train.jpack", "JPK2" + folder.pack.substr(4));
  refuse(folder, {"train.jpack", "does not begin"});
  folder.write("train.jpack", jpack_file({{0, folder.rest}, {2, folder.rest}}));
  refuse(folder, {"train.jpack: image 1", "label 2", "2 classes"});
  remove_path(folder / "jpeg_header.bin");
  refuse(folder, {"jpeg_header.bin"});
}

TEST(PackedImages, file_of_another_kind_is_refused) {
  const TemporaryFolder folder;
  folder.write("x.zip", "PK");
  expect_error(ErrorKind::data, {"x.zip", ".jpack"},
               [&] { open_image_split(options_of(folder, "x.zip")); });
}

}  // namespace
}  // namespace heddle
