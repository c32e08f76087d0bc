// Captioned scenes as files, read back as a set; and whose photos collages show.
#include <gtest/gtest.h>

#include <set>

#include "heddle/base/files/files.h"
#include "heddle/base/parallel.h"
#include "heddle/data/captions.h"
#include "heddle/train/batches/photo_pools.h"
#include "heddle/train/batches/scene_files.h"
#include "tests/base/temporary.h"

namespace heddle::train {
namespace {

TEST(CaptionedFiles, scenes_are_read_back_with_their_captions) {
  const TemporaryFolder folder;
  const auto draw = [](uint64_t i) { return draw_captioned_shapes(kCaptionedShapes, 1, i); };
  write_captioned_scenes({.folder = folder / "set", .count = 300, .part = "train", .classes = {}},
                         draw);
  write_captioned_scenes(
      {.folder = folder / "set", .first = 300, .count = 5, .part = "val", .classes = {}}, draw);
  const CaptionSplit split =
      open_caption_split({.path = folder / "set", .cache_dir = folder / "cache"});
  ASSERT_EQ(split.train.size(), 300);
  ASSERT_EQ(split.val.size(), 5);
  for (const int64_t i : {0, 255, 256, 299}) {
    const CaptionedScene scene = draw(static_cast<uint64_t>(i));
    EXPECT_EQ(split.train.image(i).rgb(), scene.image);
    EXPECT_TRUE(std::ranges::equal(split.train.captions(i), scene.captions));
    const Json line = Json::parse(split.train.scene(i).json);
    EXPECT_EQ(caption_scene_of(line, "line"), scene.scene);
  }
  EXPECT_EQ(split.val.image(4).rgb(), draw(304).image);
}

TEST(CaptionedFiles, bytes_are_the_same_for_any_number_of_threads) {
  const TemporaryFolder folder;
  const int before = num_threads();
  std::set<std::string> sums;
  for (const int threads : {1, 2, 4}) {
    set_num_threads(threads);
    const std::string root = folder / fmt::format("{}", threads);
    write_captioned_scenes(
        {.folder = root, .count = 270, .part = "train", .classes = {}},
        [](uint64_t i) { return draw_captioned_shapes(kCaptionedShapes, 1, i); });
    std::string all = read_file(root + "/train.jsonl");
    for (const std::string& name : list_directory(root + "/train")) {
      all += read_file(root + "/train/" + name);
    }
    sums.insert(checksum(all));
  }
  set_num_threads(before);
  EXPECT_EQ(sums.size(), 1U);
}

// Photos of three classes, each of another colour: those to train on of 10 to 34, those to test on
// of 200 and more.
struct PhotosFolder : TemporaryFolder {
  PhotosFolder() {
    for (const char* name : {"cat", "dog", "ship"}) {
      for (int i = 0; i < 25; ++i) add("train", name, 10 + i);
      for (int i = 0; i < 5; ++i) add("test", name, 200 + i);
    }
  }
  void add(const std::string& part, const std::string& name, int level) const {
    Image image(8, 8);
    std::ranges::fill(image.pixels, static_cast<uint8_t>(level));
    make_directories(*this / ("set/" + part + "/" + name));
    write(fmt::format("set/{}/{}/{:03}.png", part, name, level), encode_png(image));
  }
};

std::set<int> levels_in(const PhotoPool& pool, bool is_unseen) {
  std::set<int> levels;
  CaptionedSceneOptions options = kCollages;
  options.captions.is_unseen = is_unseen;
  for (uint64_t i = 0; i < 200; ++i) {
    for (const SceneObject& object : draw_collage(options, pool, 1, i).scene.objects) {
      levels.insert(std::stoi(object.photo.substr(object.photo.rfind('/') + 1)));
    }
  }
  return levels;
}

TEST(PhotoPools, photos_to_test_on_are_in_no_other_part) {
  const PhotosFolder folder;
  const PhotoPools pools = open_photo_pools(folder / "set");
  EXPECT_EQ(pools.train.classes, (std::vector<std::string>{"cat", "dog", "ship"}));
  const std::set<int> train = levels_in(pools.train, false), val = levels_in(pools.val, false);
  std::set<int> test = levels_in(pools.test, false);
  EXPECT_EQ(train.size(), 22U);
  EXPECT_EQ(*train.rbegin(), 31);
  EXPECT_EQ(val, (std::set<int>{32, 33, 34}));  // a tenth of 25, rounded up
  EXPECT_EQ(test, (std::set<int>{200, 201, 202, 203, 204}));
  EXPECT_EQ(levels_in(pools.test, true), test);
  EXPECT_EQ(pools.test.photo(0).row(0)[0], 200);
}

TEST(PhotoPools, sets_that_cannot_be_captioned_are_refused) {
  const PhotosFolder folder;
  const auto refused = [&](const std::vector<std::string>& words) {
    expect_error(ErrorKind::data, words, [&] { open_photo_pools(folder / "set"); });
  };
  for (const int level : {3, 4}) folder.add("train", "oak", level);
  refused({"'oak'", "airplane"});
  remove_path(folder / "set/train/oak");
  folder.add("train", "frog", 3);
  refused({"'frog' has one photo to train on", "two"});  // of one photo the tenth is all
  remove_path(folder / "set/train/frog");
  remove_path(folder / "set/test");
  refused({"held out", "train and test"});
}

}  // namespace
}  // namespace heddle::train
