// The cache of decoded images: made once, the same for any threads, made anew where it is damaged.
#include "heddle/data/image_cache.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "heddle/base/parallel.h"
#include "tests/data/image_files.h"

namespace heddle {
namespace {

using testing::image_file;
using testing::write_below;

// Images of two classes, more than are decoded at once.
struct ClassFolder : TemporaryFolder {
  ClassFolder() {
    const char* kinds[] = {"420.jpg", "grey.png", "palette.png", "sixteen_bit.png", "422.jpg"};
    for (int i = 0; i < 300; ++i) {
      write_below(*this,
                  fmt::format("set/{}/{:03}.img.{}", i % 2, i, i % 5 % 4 == 0 ? "jpg" : "png"),
                  image_file(kinds[i % 5]));
    }
  }
  ImageSource source() const { return find_images(*this / "set").train(); }
  ImageCache open(std::vector<std::string>* said = nullptr, int64_t edge = 0) const {
    return ImageCache::open_or_build(source(),
                                     {.folder = *this / "cache", .name = "train", .edge = edge},
                                     [=](std::string_view text) {
                                       if (said) said->emplace_back(text);
                                     });
  }
  std::string only_file() const { return list_directory(*this / "cache").at(0); }
};

TEST(ImageCache, is_made_once_and_for_each_edge) {
  const ClassFolder folder;
  std::vector<std::string> said;
  const ImageCache first = folder.open(&said);
  ASSERT_EQ(said.size(), 1U);
  EXPECT_NE(said[0].find("train: decoded in"), std::string::npos);
  said.clear();
  const ImageCache second = folder.open(&said);
  EXPECT_TRUE(said.empty());
  EXPECT_EQ(first.key(), second.key());
  EXPECT_EQ(first.path(), second.path());
  EXPECT_EQ(first.size(), 300);
  EXPECT_EQ(first.name(299), "1/299.img.jpg");
  folder.open(&said, 20);
  EXPECT_EQ(said.size(), 1U);
  EXPECT_EQ(list_directory(folder / "cache").size(), 2U);
}

TEST(ImageCache, has_the_same_bytes_for_any_threads) {
  const ClassFolder folder;
  const int before = num_threads();
  std::vector<std::string> files;
  for (const int threads : {1, 4}) {
    set_num_threads(threads);
    files.push_back(read_file(folder.open().path()));
    remove_path(folder / "cache");
  }
  set_num_threads(before);
  EXPECT_EQ(files[0], files[1]);
}

TEST(ImageCache, changed_file_is_decoded_anew_and_its_key_is_of_the_content) {
  const ClassFolder folder;
  const ImageCache first = folder.open();
  const std::string file = folder / "set/0/000.img.jpg";
  std::filesystem::last_write_time(
      file, std::filesystem::last_write_time(file) - std::chrono::seconds(5));
  const ImageCache touched = folder.open();
  EXPECT_NE(touched.path(), first.path());
  EXPECT_EQ(touched.key(), first.key());
  folder.write("set/0/000.img.jpg", image_file("444.jpg"));
  EXPECT_NE(folder.open().key(), first.key());
}

TEST(ImageCache, every_altered_byte_and_cut_makes_it_anew) {
  const ClassFolder folder;
  const ImageCache whole = folder.open();
  const std::string bytes = read_file(whole.path()), key = whole.key();
  std::vector<std::string> said;
  const auto reopens = [&](const std::string& altered) {
    said.clear();
    write_file_atomic(whole.path(), altered);  // replaced: the first one stays mapped
    EXPECT_EQ(folder.open(&said).key(), key);
    ASSERT_EQ(said.size(), 2U);
    EXPECT_NE(said[0].find("not usable"), std::string::npos) << said[0];
  };
  uint32_t state = 1;
  for (int round = 0; round < 12; ++round) {
    std::string altered = bytes;
    state = state * 1664525 + 1013904223;
    // All over the file, and half of the time in its last 800 bytes.
    const size_t back = (state >> 8) % (round % 2 ? 800 : bytes.size());
    altered[bytes.size() - 1 - back] ^= static_cast<char>(1 << round % 8);
    reopens(altered);
  }
  for (const size_t size : {size_t{0}, size_t{7}, size_t{80}, bytes.size() / 2, bytes.size() - 8}) {
    reopens(bytes.substr(0, size));
  }
  EXPECT_EQ(read_file(whole.path()), bytes);
}

TEST(ImageCache, leftover_of_a_killed_build_goes_when_it_is_old) {
  const ClassFolder folder;
  const std::string path = folder.open().path();
  const std::string old_file = temporary_name(path), new_file = temporary_name(path);
  std::ofstream(old_file) << "x";
  std::ofstream(new_file) << "x";
  std::filesystem::last_write_time(
      old_file, std::filesystem::file_time_type::clock::now() - std::chrono::minutes(11));
  folder.open();
  EXPECT_FALSE(path_exists(old_file));
  EXPECT_TRUE(path_exists(new_file));
}

}  // namespace
}  // namespace heddle
