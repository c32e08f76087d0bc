// What the report of a run shows of images: how large, which boxes and captions, and no more bytes
// than a page can hold.
#include "heddle/train/tasks/images/shown_images.h"

#include <gtest/gtest.h>

#include "corpora/captions/captioned_scenes.h"
#include "heddle/base/rng.h"
#include "heddle/text/strings/strings.h"
#include "tests/base/temporary.h"

namespace heddle::train {
namespace {

// Of pixels that no file makes smaller.
Image noise(int64_t height, int64_t width) {
  Image image(height, width);
  RngStream random(make_key(3, 1, 0));
  for (uint8_t& level : image.pixels) level = static_cast<uint8_t>(random.below(256));
  return image;
}

Image decoded(const Json& shown) {
  const std::string& source = shown.get_string("src");
  const std::string bytes = base64_bytes(source.substr(source.find(',') + 1), "src");
  return decode_png(std::as_bytes(std::span(bytes)), "src");
}

TEST(ShownImages, images_are_shrunk_and_bounded_whatever_they_show) {
  const Image small = noise(30, 64), large = noise(300, 400);
  EXPECT_EQ(decoded(shown_image(small)), small);
  EXPECT_EQ(decoded(shown_image(large)).size(), (ImageSize{48, 64}));
  EXPECT_EQ(decoded(shown_image(large, kShownLargeEdge)).size(), (ImageSize{96, 128}));
  EXPECT_EQ(decoded(shown_image(noise(1000, 3), kShownLargeEdge)).size(), (ImageSize{128, 1}));
  // Pixels, a byte a row and up to 1 kB of the file's own, four characters for three bytes.
  const size_t edge = kShownLargeEdge, most = 4 * (3 * edge * edge + edge + 1000) / 3;
  EXPECT_LT(shown_image(noise(500, 500), kShownLargeEdge).dump().size(), most);
}

TEST(ShownImages, boxes_lie_in_what_is_shown_without_crowds) {
  const BoxedImage one{noise(256, 512),
                       {{.box = {40, 80, 400, 200}, .label = 3},
                        {.box = {0, 0, 100, 100}, .label = 1, .is_crowd = true},
                        {.box = {-20, 100, 520, 256.4}, .label = 2}}};
  const Json shown = shown_objects(one);
  EXPECT_EQ(shown.get_int("width"), 128);
  EXPECT_EQ(shown.get_int("height"), 64);
  EXPECT_EQ(shown.at("boxes").dump(), R"([{"label": 3, "box": [10.0, 20.0, 100.0, 50.0]}, )"
                                      R"({"label": 2, "box": [0.0, 25.0, 128.0, 64.0]}])");
  EXPECT_FALSE(shown.contains("found"));
}

TEST(ShownImages, mistakes_come_first_and_no_more_boxes_than_a_page_holds) {
  DetectionMistakes mistakes;
  for (int32_t i = 0; i < 300; ++i) {
    mistakes.truths.push_back({.box = {0, 0, 1, 1}, .label = i});
    mistakes.sure.push_back({.box = {0, 0, 1, 1}, .label = i, .score = 0.75});
    mistakes.is_missed.push_back(i == 250 || i == 7);
    mistakes.is_wrong.push_back(i > 290);
  }
  const Json shown = shown_detections(noise(8, 8), mistakes);
  const Json::Array& boxes = shown.at("boxes").as_array();
  const Json::Array& found = shown.at("found").as_array();
  ASSERT_EQ(boxes.size(), kMostShownBoxes);
  ASSERT_EQ(found.size(), kMostShownBoxes);
  EXPECT_EQ(boxes[0].get_int("label"), 7);
  EXPECT_EQ(boxes[1].get_int("label"), 250);
  EXPECT_EQ(boxes[2].get_int("label"), 0);
  EXPECT_TRUE(boxes[1].get_bool("missed"));
  EXPECT_FALSE(boxes[2].contains("missed"));
  EXPECT_EQ(found[8].get_int("label"), 299);
  EXPECT_TRUE(found[8].get_bool("wrong"));
  EXPECT_EQ(found[9].get_int("label"), 0);
  EXPECT_FALSE(found[9].contains("wrong"));
  EXPECT_EQ(found[9].get_double("score"), 0.75);
}

class ShownCaptions : public ::testing::Test {
 protected:
  // Two images, the second with more captions than are shown, the first of them too long.
  CaptionSet set() const {
    const std::string image = encode_png(noise(32, 32));
    folder_.write("a.png", image);
    folder_.write("b.png", image);
    std::string lines = R"({"file_name": "a.png", "captions": ["a dog runs on grass"]})";
    lines +=
        "\n"
        R"({"file_name": "b.png", "captions": [")" +
        std::string(500, 'x') + R"(")";
    for (int i = 1; i < 8; ++i) lines += fmt::format(R"(, "caption {}")", i);
    folder_.write("train.jsonl", lines + "]}\n");
    const CaptionSource source = read_caption_lines(folder_ / "train.jsonl");
    return cached_captions(source, "train", {.cache_dir = folder_ / "cache"});
  }
  TemporaryFolder folder_;
};

TEST_F(ShownCaptions, captions_are_the_first_few_cut_where_they_are_long) {
  const Json shown = shown_captions(set(), 1);
  EXPECT_TRUE(shown.get_string("name").ends_with("b.png"));
  const std::vector<std::string> captions = shown.at("captions").as_strings();
  ASSERT_EQ(captions.size(), kMostShownCaptions);
  EXPECT_EQ(captions[0], std::string(kMostShownCharacters, 'x') + "…");
  EXPECT_EQ(captions[4], "caption 4");
}

TEST_F(ShownCaptions, what_is_untrue_stands_beside_what_is_so) {
  CaptionScene scene{.size = {32, 32}};
  scene.objects.push_back({.sort = {"red", "circle"}, .box = {0, 0, 8, 8}});
  const std::vector<std::string> texts = {"there are two red circles", "a red circle is a"};
  const Json shown = shown_untruths(set(), 0, texts, scene);
  EXPECT_EQ(shown.at("written").dump(),
            R"([{"text": "there are two red circles", "truth": "there is one red circle"}, )"
            R"({"text": "a red circle is a"}])");
  EXPECT_EQ(shown.at("captions").as_strings(), std::vector<std::string>{"a dog runs on grass"});
}

// chrF of equal texts is 100, and the best of several captions counts.
TEST_F(ShownCaptions, writing_least_like_its_captions_comes_first) {
  const std::vector<int64_t> images = {1, 0, 1};
  const std::vector<std::string> texts = {"caption 3", "a dog runs on sand", ""};
  const Json shown = shown_writing(set(), images, texts);
  std::vector<std::string> written;
  std::vector<double> chrf;
  for (const Json& one : shown.as_array()) {
    written.push_back(one.at("written").as_array()[0].get_string("text"));
    chrf.push_back(one.at("written").as_array()[0].get_double("chrf"));
  }
  EXPECT_EQ(written, (std::vector<std::string>{"", "a dog runs on sand", "caption 3"}));
  EXPECT_EQ(chrf[0], 0);
  EXPECT_GT(chrf[1], 50);
  EXPECT_LT(chrf[1], 100);
  EXPECT_EQ(chrf[2], 100);
}

}  // namespace
}  // namespace heddle::train
