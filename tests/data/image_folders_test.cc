// Sets of images in folders of classes: what is found there, held out, left out and refused.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "heddle/base/json/json.h"
#include "heddle/vision/resize.h"
#include "tests/data/image_files.h"
#include "tests/data/image_sets.h"

namespace heddle {
namespace {

using testing::image_file;
using testing::warnings_of;
using testing::write_below;

// Two classes of two images each.
void write_classes(const TemporaryFolder& folder, const std::string& root) {
  write_below(folder, root + "cat/b.jpg", image_file("420.jpg"));
  write_below(folder, root + "cat/a.PNG", image_file("rgb.png"));
  write_below(folder, root + "ant/deep/c.jpeg", image_file("grey.jpg"));
  write_below(folder, root + "ant/.hidden.jpg", "no image");
  write_below(folder, root + "ant/d.png", image_file("rgba.png"));
}

ImageSetOptions options_of(const TemporaryFolder& folder, const std::string& path) {
  return {.path = folder / path, .cache_dir = folder / "cache"};
}

TEST(ImageFolders, classes_are_folders_in_order_and_images_as_pillow_reads_them) {
  const TemporaryFolder folder;
  write_classes(folder, "set/");
  const ImageSet set = open_image_set(options_of(folder, "set"));
  EXPECT_EQ(set.labels(), (std::vector<std::string>{"ant", "cat"}));
  const std::vector<std::string> names = {"ant/d.png", "ant/deep/c.jpeg", "cat/a.PNG", "cat/b.jpg"};
  const std::vector<std::string> fixtures = {"rgba.png", "grey.jpg", "rgb.png", "420.jpg"};
  ASSERT_EQ(set.size(), 4);
  EXPECT_EQ(set.channels(), 3);
  const Json known = Json::load(std::string(testing::kFixtures) + "/images/images.json");
  for (int64_t i = 0; i < 4; ++i) {
    const auto at = static_cast<size_t>(i);
    EXPECT_EQ(set.path(i), folder / ("set/" + names[at]));
    EXPECT_EQ(set.label(i), i < 2 ? 0 : 1);
    const Image image = set.image(i).rgb();
    for (const Json& file : known.at("files").as_array()) {
      if (file.get_string("file") != fixtures[at]) continue;
      EXPECT_EQ(crc32(std::as_bytes(std::span(image.pixels))), file.get_int("crc")) << fixtures[at];
    }
  }
}

TEST(ImageFolders, train_and_the_first_of_val_and_test_are_split) {
  const TemporaryFolder folder;
  write_classes(folder, "set/train/");
  write_below(folder, "set/test/ant/x.png", image_file("grey.png"));
  EXPECT_EQ(open_image_split(options_of(folder, "set")).val.size(), 1);
  write_below(folder, "set/val/cat/x.png", image_file("grey.png"));
  write_below(folder, "set/val/cat/y.png", image_file("rgb.png"));
  make_directories(folder / "set/val/ant");
  const ImageSplit split = open_image_split(options_of(folder, "set"));
  EXPECT_EQ(split.train.size(), 4);
  ASSERT_EQ(split.val.size(), 2);
  EXPECT_EQ(split.val.label(0), 1);  // cat is the second class in training, the first there
  EXPECT_EQ(split.val.path(0), folder / "set/val/cat/x.png");
  EXPECT_EQ(open_image_set(options_of(folder, "set")).size(), 1);  // it is tested on test/
  make_directories(folder / "set/annotations");                    // that are none of ours
  EXPECT_EQ(open_image_split(options_of(folder, "set")).val.size(), 2);
  ImageSetOptions other = options_of(folder, "set/train");
  other.val_path = folder / "set/test";
  EXPECT_EQ(open_image_split(other).val.size(), 1);
  write_below(folder, "set/test/bee/x.png", image_file("rgb.png"));
  expect_error(ErrorKind::data, {"set/test/bee/x.png", "'bee'", "2 known"},
               [&] { open_image_split(other); });
}

TEST(ImageFolders, what_is_no_part_is_named_beside_parts) {
  const TemporaryFolder folder;
  write_classes(folder, "set/train/");
  write_classes(folder, "set/val/");
  EXPECT_EQ(warnings_of([&] { find_images(folder / "set").train(); }), "");
  write_classes(folder, "set/eval/");
  write_below(folder, "set/validation/ant/x.png", image_file("grey.png"));
  write_below(folder, "set/notes/read.txt", "none");
  write_below(folder, "set/y.png", image_file("grey.png"));
  write_below(folder, "set/train/z.png", image_file("grey.png"));
  const std::string said =
      warnings_of([&] { EXPECT_EQ(find_images(folder / "set").train().entries.size(), 4U); });
  for (const char* words :
       {"passed over: eval/ with 4 images, validation/ with 1 image; taken are train/, val/ ",
        "passed over: 1 image beside folders, in none of them, the first ", "/set/y.png",
        "/set/train/z.png"}) {
    EXPECT_NE(said.find(words), said.npos) << words << " is not in " << said;
  }
  EXPECT_EQ(said.find("notes"), said.npos) << said;
}

TEST(ImageFolders, train_among_classes_is_one_and_with_folders_in_it_unclear) {
  const TemporaryFolder folder;
  for (const char* name : {"bus/1.png", "car/1.png", "train/1.png"}) {
    write_below(folder, std::string("set/") + name, image_file("grey.png"));
  }
  EXPECT_EQ(find_images(folder / "set").train().labels,
            (std::vector<std::string>{"bus", "car", "train"}));
  write_below(folder, "set/train/steam/1.png", image_file("grey.png"));
  expect_error(ErrorKind::data, {"set: train/ may be a part", "beside it bus/, car/"},
               [&] { find_images(folder / "set"); });
  write_classes(folder, "parts/train/");
  write_classes(folder, "parts/eval/");
  expect_error(ErrorKind::data, {"parts: train/ may be a part", "eval/", "called by one of train"},
               [&] { find_images(folder / "parts"); });
}

TEST(ImageFolders, unlabelled_images_are_not_those_held_out) {
  const TemporaryFolder folder;
  write_classes(folder, "set/");
  const auto names = [&](const std::string& path) {
    std::vector<std::string> all;
    for (const auto& entry : find_unlabelled(folder / path).entries) all.push_back(entry.name);
    return all;
  };
  EXPECT_EQ(names("set").size(), 4U);
  write_below(folder, "parts/train/a.png", image_file("grey.png"));
  write_below(folder, "parts/test/b.png", image_file("grey.png"));
  const std::string said =
      warnings_of([&] { EXPECT_EQ(names("parts"), std::vector<std::string>{"a.png"}); });
  EXPECT_NE(said.find("passed over: test/ with 1 image; taken are train/"), said.npos) << said;
}

TEST(ImageFolders, links_to_folders_below_a_class_are_said_to_be_such) {
  const TemporaryFolder folder;
  write_classes(folder, "set/");
  std::filesystem::create_directory_symlink(folder / "set/ant", folder / "set/cat/more");
  const std::string said =
      warnings_of([&] { EXPECT_EQ(find_images(folder / "set").train().entries.size(), 4U); });
  EXPECT_NE(said.find("passed over: 1 link to folders"), said.npos) << said;
  EXPECT_NE(said.find("set/cat/more"), said.npos) << said;
  EXPECT_EQ(said.find("no images"), said.npos) << said;
}

TEST(ImageFolders, a_part_is_read_though_another_is_broken) {
  const TemporaryFolder folder;
  write_classes(folder, "set/val/");
  make_directories(folder / "set/train/ant");
  write_below(folder, "packs/val.jpack", std::string("JPK1\0\0\0\0", 8));
  write_below(folder, "packs/train.jpack", "none");
  write_below(folder, "packs/jpeg_header.bin", "");
  EXPECT_EQ(find_images(folder / "set").val().entries.size(), 4U);
  expect_error(ErrorKind::data, {"set/train/ant", "no image file"},
               [&] { find_images(folder / "set").train(); });
  EXPECT_EQ(find_images(folder / "packs").val().entries.size(), 0U);
  expect_error(ErrorKind::data, {"train.jpack"}, [&] { find_images(folder / "packs").train(); });
}

TEST(ImageFolders, classes_of_equal_names_stay_apart) {
  const std::vector<std::string> cranes = {"crane", "ant", "crane", "crane (class 4)", "crane"};
  EXPECT_EQ(places_among(cranes, cranes), (std::vector<int32_t>{0, 1, 2, 3, 4}));
  EXPECT_EQ(places_among({"crane (class 2)", "crane", "bee"}, cranes),
            (std::vector<int32_t>{2, 0, -1}));
}

TEST(ImageFolders, share_of_each_class_is_held_out_by_the_seed) {
  const TemporaryFolder folder;
  for (int i = 0; i < 10; ++i) {
    write_below(folder, fmt::format("set/a/{}.png", i), image_file("grey.png"));
    if (i < 4) write_below(folder, fmt::format("set/b/{}.png", i), image_file("rgb.png"));
  }
  write_below(folder, "set/c/0.png", image_file("rgb.png"));
  ImageSetOptions options = options_of(folder, "set");
  options.val_share = 0.2;
  std::set<std::string> choices;
  for (options.seed = 1; options.seed <= 5; ++options.seed) {
    const ImageSplit split = open_image_split(options);
    std::vector<size_t> counts;
    for (const auto& images : split.val.by_label()) counts.push_back(images.size());
    EXPECT_EQ(counts, (std::vector<size_t>{2, 1, 0}));  // of 10, 4 and 1
    std::set<std::string> paths;
    for (int64_t i = 0; i < split.train.size(); ++i) paths.insert(split.train.path(i));
    for (int64_t i = 0; i < split.val.size(); ++i) paths.insert(split.val.path(i));
    EXPECT_EQ(paths.size(), 15U);
    EXPECT_EQ(split.val.key(), open_image_split(options).val.key());
    choices.insert(split.val.key());
  }
  EXPECT_GT(choices.size(), 2U);
  options.val_share = 0;
  expect_error(ErrorKind::data, {"15 images", "val_share"}, [&] { open_image_split(options); });
}

TEST(ImageFolders, folder_without_classes_or_with_an_empty_one_is_refused) {
  const TemporaryFolder folder;
  write_classes(folder, "set/");
  make_directories(folder / "set/bee");
  expect_error(ErrorKind::data, {"set/bee", "no image file"},
               [&] { open_image_split(options_of(folder, "set")); });
  folder.write("set/bee/notes.txt", "none");
  expect_error(ErrorKind::data, {"set/bee", "no image file"},
               [&] { open_image_split(options_of(folder, "set")); });
  expect_error(ErrorKind::data, {"nowhere", "no such"},
               [&] { open_image_split(options_of(folder, "nowhere")); });
  make_directories(folder / "bare");
  expect_error(ErrorKind::data, {"bare", "no images", "train.jpack"},
               [&] { open_image_split(options_of(folder, "bare")); });
  write_below(folder, "one/cat/a.png", image_file("rgb.png"));
  expect_error(ErrorKind::data, {"'cat'", "nothing to tell apart"},
               [&] { open_image_split(options_of(folder, "one")); });
  write_below(folder, "odd/c\xfft/a.png", image_file("rgb.png"));
  expect_error(ErrorKind::data, {"not UTF-8"},
               [&] { open_image_split(options_of(folder, "odd")); });
  make_directories(folder / "held/val/cat");
  folder.write("held/val/cat/a.png", image_file("rgb.png"));
  expect_error(ErrorKind::data, {"held-out images alone"},
               [&] { open_image_split(options_of(folder, "held")); });
}

TEST(ImageFolders, bad_files_are_counted_named_and_left_out_each_time) {
  const TemporaryFolder folder;
  write_classes(folder, "set/");
  write_below(folder, "set/cat/cut.jpg", image_file("420.jpg").substr(0, 700));
  write_below(folder, "set/cat/vast.png", image_file("vast.png.bad"));
  write_below(folder, "set/ant/film.gif", "GIF89a");
  write_below(folder, "set/ant/e.png", image_file("animation.png.bad"));
  write_below(folder, "set/ant/empty.png", "");
  write_below(folder, "set/ant/zero.jpg", "");
  write_below(folder, "set/ant/notes.txt", "these are ants");
  for (int opening = 0; opening < 2; ++opening) {
    ImageSet set = open_image_set(options_of(folder, "set"));
    const std::string said = warnings_of([&] { set = open_image_set(options_of(folder, "set")); });
    EXPECT_EQ(set.size(), 4);
    EXPECT_EQ(set.path(0), folder / "set/ant/d.png");
    for (const char* word :
         {"6 images", "ant/film.gif is a GIF", "ant/e.png", "animation", "ant/empty.png", "cut.jpg",
          "and 1 more", "passed over: 1 file", "notes.txt"}) {
      EXPECT_NE(said.find(word), std::string::npos) << word << " is not in " << said;
    }
  }
  write_below(folder, "bad/a/x.jpg", "no");
  write_below(folder, "bad/b/y.jpg", "no");
  expect_error(ErrorKind::data, {"bad", "none of 2 images", "a/x.jpg"},
               [&] { open_image_split(options_of(folder, "bad")); });
  EXPECT_TRUE(std::ranges::none_of(list_directory(folder / "cache"), is_temporary_name));
}

TEST(ImageFolders, larger_images_are_shrunk_to_the_edge) {
  const TemporaryFolder folder;
  write_classes(folder, "set/");
  write_below(folder, "set/ant/small.png", image_file("sixteen_bit.png"));  // 11 x 9
  ImageSetOptions options = options_of(folder, "set");
  const ImageSet whole = open_image_set(options);
  options.cache_edge = 20;  // of 45 x 37: 20 * 45 / 37 = 24.3
  const ImageSet small = open_image_set(options);
  ASSERT_EQ(small.size(), 5);
  for (int64_t i = 0; i < 5; ++i) {
    const Image image = whole.image(i).rgb();
    EXPECT_EQ(small.image(i).rgb(),
              image.height < 20 ? image : resize(image, 20, 24, Resample::bilinear));
  }
  EXPECT_NE(small.key(), whole.key());
}

TEST(ImageFolders, chosen_images_keep_their_labels_and_paths) {
  const TemporaryFolder folder;
  write_classes(folder, "set/");
  const ImageSet set = open_image_set(options_of(folder, "set"));
  const ImageSet part = set.select({3, 0}).select({1, 0, 0});
  ASSERT_EQ(part.size(), 3);
  EXPECT_EQ(part.path(0), set.path(0));
  EXPECT_EQ(part.path(2), set.path(3));
  EXPECT_EQ(part.label(1), 1);
  EXPECT_EQ(part.image(1).rgb(), set.image(3).rgb());
  EXPECT_EQ(part.by_label(), (std::vector<std::vector<int64_t>>{{0}, {1, 2}}));
  EXPECT_NE(part.key(), set.key());
  EXPECT_EQ(set.select({0, 1, 2, 3}).key(), set.key());
}

TEST(ImageFolders, labels_of_a_model_are_taken_and_unknown_ones_refused) {
  const TemporaryFolder folder;
  write_classes(folder, "set/");
  const ImageSet set = open_image_set(options_of(folder, "set"), {"cat", "dog", "ant"});
  EXPECT_EQ(set.label(0), 2);
  EXPECT_EQ(set.label(3), 0);
  expect_error(ErrorKind::data, {"'cat'"}, [&] {
    open_image_set(options_of(folder, "set"), {"ant", "dog"});
  });
}

}  // namespace
}  // namespace heddle
