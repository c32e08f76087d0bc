// Images with captions out of JSON lines and NLVR's files: what is read, and what is refused.
#include "heddle/data/captions.h"

#include <gtest/gtest.h>

#include <set>

#include "tests/data/image_files.h"
#include "tests/data/tar_file.h"

namespace heddle {
namespace {

using testing::image_file;
using testing::tar_file;
using testing::warnings_of;
using testing::write_below;

CaptionSetOptions options_of(const TemporaryFolder& folder) {
  return {.path = folder / "set", .cache_dir = folder / "cache"};
}

// Two images in train, one in val.
struct LinesFolder : TemporaryFolder {
  LinesFolder() {
    write_below(*this, "set/train/a.png", image_file("rgb.png"));
    write_below(*this, "set/train/b.jpg", image_file("420.jpg"));
    write_below(*this, "set/val/a.png", image_file("grey.png"));
    write_lines("train",
                R"({"file_name": "train/a.png", "captions": ["ein Frosch", "a frog"], "id": 7})"
                "\n\n"
                R"({"file_name": "train/b.jpg", "captions": ["dog"], "objects": [1]})");
    write_lines("val", R"({"file_name": "val/a.png", "captions": ["x"]})");
  }
  void write_lines(const std::string& part, const std::string& text) const {
    write("set/" + part + ".jsonl", text);
  }
  // Each broken text is the second line of the file.
  void expect_refused(const std::string& line, std::vector<std::string> words) const {
    write_lines("train", R"({"file_name": "train/a.png", "captions": ["x"]})"
                         "\n" +
                             line + "\n");
    words.emplace_back("train.jsonl: line 2");
    expect_error(ErrorKind::data, words, [&] { open_caption_split(options_of(*this)); });
  }
};

TEST(CaptionLines, images_have_their_captions_and_scenes) {
  const LinesFolder folder;
  std::vector<std::string> said;
  const CaptionSplit split = open_caption_split(
      options_of(folder), [&](std::string_view line) { said.emplace_back(line); });
  ASSERT_EQ(split.train.size(), 2);
  ASSERT_EQ(split.val.size(), 1);
  EXPECT_EQ(split.train.captions(0).size(), 2U);
  EXPECT_EQ(split.train.captions(0)[0], "ein Frosch");
  EXPECT_EQ(split.train.captions(1)[0], "dog");
  EXPECT_EQ(split.train.scene(0).json, "");
  EXPECT_EQ(Json::parse(split.train.scene(1).json).at("objects").size(), 1U);
  EXPECT_EQ(split.train.scene(1).where, folder / "set/train.jsonl" + ": line 3");
  EXPECT_EQ(split.train.path(1), folder / "set/train/b.jpg");
  EXPECT_EQ(split.train.image(1).rgb(),
            read_image(std::string(testing::kFixtures) + "/images/420.jpg"));
  EXPECT_EQ(split.val.captions(0)[0], "x");
  EXPECT_NE(std::ranges::find(said, "train: 2 images with 3 captions"), said.end());
  const CaptionSet one = split.train.select({1});
  EXPECT_EQ(one.captions(0)[0], "dog");
  EXPECT_NE(one.key(), split.train.key());
  EXPECT_EQ(split.train.select({0, 1}).key(), split.train.key());
}

TEST(CaptionLines, key_changes_with_a_caption) {
  const LinesFolder folder;
  const std::string key = open_caption_split(options_of(folder)).val.key();
  EXPECT_EQ(open_caption_split(options_of(folder)).val.key(), key);
  folder.write_lines("val", R"({"file_name": "val/a.png", "captions": ["y"]})");
  EXPECT_NE(open_caption_split(options_of(folder)).val.key(), key);
}

TEST(CaptionLines, parts_have_their_names_and_a_share_is_held_out_where_none_has) {
  const LinesFolder folder;
  write_below(folder, "set/t.png", image_file("rgb.png"));
  for (const char* part : {"test", "unseen"}) {
    folder.write_lines(part, R"({"file_name": "t.png", "captions": ["x"]})");
  }
  const CaptionSources found = find_captions(folder / "set");
  EXPECT_TRUE(found.train && found.val && found.test && found.unseen);
  EXPECT_EQ(found.unseen().file, folder / "set/unseen.jsonl");
  CaptionSetOptions options = options_of(folder);
  options.path = folder / "set/train.jsonl";
  options.val_share = 0.5;
  const CaptionSplit split = open_caption_split(options);
  EXPECT_EQ(split.train.size(), 1);
  EXPECT_EQ(split.val.size(), 1);
  options.val_share = 0.9;
  expect_error(ErrorKind::data, {"2 images", "val_share"}, [&] { open_caption_split(options); });
  options.val_path = folder / "set";
  EXPECT_EQ(open_caption_split(options).val.captions(0)[0], "x");
}

TEST(CaptionLines, what_is_wrong_is_named_with_its_line) {
  const LinesFolder folder;
  folder.expect_refused(R"({"file_name": "train/b.jpg", "captions": ["x"])", {});  // cut short
  folder.expect_refused(R"({"file_name": "train/b.j)", {});
  folder.expect_refused(R"({"file_name": "train/c.jpg", "captions": ["x"]})",
                        {"no image", "c.jpg"});
  folder.expect_refused(R"({"file_name": "train", "captions": ["x"]})", {"no image", "train"});
  folder.expect_refused(R"({"captions": ["x"]})", {"file_name"});
  folder.expect_refused(R"({"file_name": "train/b.jpg"})", {"captions"});
  folder.expect_refused(R"({"file_name": "train/b.jpg", "captions": []})", {"b.jpg", "no caption"});
  folder.expect_refused(R"({"file_name": "train/b.jpg", "captions": "x"})", {"\"x\""});
  folder.expect_refused(R"({"file_name": "train/b.jpg", "captions": [7]})", {"7"});
  folder.expect_refused(R"({"file_name": "train/b.jpg", "captions": ["x", " \t"]})", {"empty"});
  folder.expect_refused("{\"file_name\": \"train/b.jpg\", \"captions\": [\"x\xff\"]}", {"UTF-8"});
  folder.expect_refused(R"({"file_name": "train/a.png", "captions": ["y"]})",
                        {"'train/a.png'", "line 1 already"});
  folder.write_lines("train", "\n");
  expect_error(ErrorKind::data, {"train.jsonl", "no line"},
               [&] { open_caption_split(options_of(folder)); });
}

TEST(CaptionLines, images_without_a_caption_are_counted_in_a_warning) {
  const LinesFolder folder;
  EXPECT_EQ(warnings_of([&] { find_captions(folder / "set").train(); }), "");
  write_below(folder, "set/train/c.png", image_file("rgb.png"));
  write_below(folder, "set/train/d.png", image_file("rgb.png"));
  write_below(folder, "set/train/notes.txt", "none");
  const std::string said = warnings_of([&] { find_captions(folder / "set").train(); });
  for (const char* word : {"train.jsonl", "2 images without a caption", "set/train/c.png"}) {
    EXPECT_NE(said.find(word), std::string::npos) << said;
  }
}

TEST(CaptionLines, damaged_images_are_left_out_with_their_captions) {
  const LinesFolder folder;
  folder.write("set/train/a.png", image_file("rgb.png").substr(0, 60));
  const std::string said = warnings_of([&] {
    const CaptionSplit split = open_caption_split(options_of(folder));
    ASSERT_EQ(split.train.size(), 1);
    EXPECT_EQ(split.train.captions(0)[0], "dog");
  });
  EXPECT_NE(said.find("1 image that cannot be read"), std::string::npos) << said;
  EXPECT_NE(said.find("train/a.png"), std::string::npos) << said;
}

TEST(CaptionLines, path_of_another_kind_is_refused) {
  const TemporaryFolder folder;
  expect_error(ErrorKind::data, {"none", "no such"}, [&] { find_captions(folder / "none"); });
  expect_error(ErrorKind::data, {folder.path(), "train.jsonl", "dev.tsv"},
               [&] { find_captions(folder.path()); });
  folder.write("a.csv", "x");
  expect_error(ErrorKind::data, {"a.csv", ".jsonl"}, [&] { find_captions(folder / "a.csv"); });
  folder.write("val.jsonl", "");
  expect_error(ErrorKind::data, {"val.jsonl", "no line"},
               [&] { find_captions(folder.path()).val(); });
}

TEST(CaptionLines, a_part_is_read_though_the_images_of_another_are_not_there) {
  const LinesFolder folder;
  folder.write_lines("val", R"({"file_name": "val/far.png", "captions": ["x"]})");
  const CaptionSources found = find_captions(folder / "set");
  EXPECT_EQ(found.train().captions.size(), 2U);
  expect_error(ErrorKind::data, {"no image", "far.png"}, [&] { found.val(); });
}

// --- NLVR ---

const std::string kHeader = "image\tlabel\tsentence\n";

// Three images: of one a sentence is true, of one two are, of one none.
struct NlvrFolder : TemporaryFolder {
  std::string rows = kHeader +
                     "a.png\ttrue\tOne box.\nb.png\tfalse\tNo box.\n"
                     "c.jpg\ttrue\tA dot\nc.jpg\ttrue\tTwo dots\n";
  std::string archive = tar_file({{"a.png", image_file("rgb.png")},
                                  {"b.png", image_file("grey.png")},
                                  {"c.jpg", image_file("420.jpg")}});
  NlvrFolder() { write_below(*this, "set/dev.tsv", rows); }
  void expect_refused(const std::string& row, std::vector<std::string> words) const {
    write("set/dev.tsv", rows + row + "\n");
    words.emplace_back("dev.tsv: line 6");
    expect_error(ErrorKind::data, words, [&] { find_captions(*this / "set").train(); });
  }
};

void expect_nlvr(const CaptionSource& source, const std::string& place) {
  EXPECT_EQ(source.captions,
            (std::vector<std::vector<std::string>>{{"One box."}, {"A dot", "Two dots"}}));
  ASSERT_EQ(source.images.entries.size(), 2U);
  EXPECT_EQ(source.images.entries[1].name, place + "c.jpg");
  const DecodedImage image = source.images.decode(1, source.images.path(1));
  EXPECT_EQ(image.pixels, read_image(std::string(testing::kFixtures) + "/images/420.jpg").pixels);
}

TEST(Nlvr, true_sentences_are_captions_of_images_in_archives_or_a_folder) {
  const NlvrFolder folder;
  testing::write_gzip(folder / "set/dev_images.tar.gz", folder.archive);
  expect_nlvr(find_captions(folder / "set").train(), "dev_images.tar.gz: ");
  folder.write("set/dev_images.tar", folder.archive);
  expect_nlvr(find_captions(folder / "set").train(), "dev_images.tar: ");
  for (const auto& [name, file] : {std::pair("a.png", "rgb.png"), std::pair("b.png", "grey.png"),
                                   std::pair("c.jpg", "420.jpg")}) {
    write_below(folder, std::string("set/dev_images/") + name, image_file(file));
  }
  expect_nlvr(find_captions(folder / "set").train(), "dev_images/");
  folder.write("set/test.tsv", folder.rows);
  folder.write("set/test_images.tar", folder.archive);
  const CaptionSplit split = open_caption_split(options_of(folder));
  EXPECT_EQ(split.train.size(), 2);
  EXPECT_EQ(split.val.path(0), folder / "set/test_images.tar: a.png");
}

TEST(Nlvr, a_part_is_read_though_the_images_of_another_are_not_there) {
  const NlvrFolder folder;
  folder.write("set/train.tsv", folder.rows);
  folder.write("set/dev_images.tar", folder.archive);
  const CaptionSources found = find_captions(folder / "set");
  EXPECT_EQ(found.val().captions.size(), 2U);
  expect_error(ErrorKind::data, {"train.tsv", "images are missing"}, [&] { found.train(); });
}

TEST(Nlvr, what_is_wrong_is_named) {
  const NlvrFolder folder;
  expect_error(ErrorKind::data, {"dev.tsv", "images are missing", "dev_images.tar.gz"},
               [&] { find_captions(folder / "set").train(); });
  folder.write("set/dev_images.tar", folder.archive);
  folder.expect_refused("d.png\ttrue\tA box", {"no image 'd.png'", "dev_images.tar"});
  folder.expect_refused("a.png\tyes\tA box", {"'yes'", "true or false"});
  folder.expect_refused("a.png\ttrue\t ", {"empty"});
  folder.expect_refused("a.png\ttrue\tA b\xffx", {"UTF-8"});
  const auto refused = [&](const std::string& text, const std::vector<std::string>& words) {
    folder.write("set/dev.tsv", text);
    expect_error(ErrorKind::data, words, [&] { find_captions(folder / "set").train(); });
  };
  refused("image\tlabel\tcaption\na.png\ttrue\tx\n", {"dev.tsv", "sentence", "caption"});
  refused(kHeader, {"dev.tsv"});
  refused(kHeader + "a.png\ttrue\tx\na.png\ttrue\n", {"dev.tsv", "line 3", "2 fields"});
  refused("", {"dev.tsv"});
  refused(kHeader + "a.png\tfalse\tx\n", {"dev.tsv", "labelled true"});
  folder.write("set/dev.tsv", folder.rows);
  folder.write("set/dev_images.tar", folder.archive.substr(0, 700));
  expect_error(ErrorKind::data, {"dev_images.tar", "cut short"},
               [&] { find_captions(folder / "set").train(); });
}

}  // namespace
}  // namespace heddle
