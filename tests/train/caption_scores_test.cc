// Captions as they are judged: words against boxes, what is asked for by kind, numbers for masks.
#include "heddle/train/metrics/caption_scores.h"

#include <gtest/gtest.h>

#include <set>

#include "corpora/captions/captioned_scenes.h"
#include "heddle/dist/packed.h"
#include "heddle/models/registry.h"
#include "heddle/text/training/tokenizer_trainer.h"
#include "heddle/train/batches/caption_batch.h"
#include "tests/base/temporary.h"

namespace heddle::train {
namespace {

TEST(CaptionScores, words_are_held_against_the_boxes_of_what_they_name) {
  CaptionScene scene{.size = {64, 64}};
  scene.objects.push_back({.sort = {"red", "circle"}, .box = {0, 0, 16, 16}});
  scene.objects.push_back({.sort = {"blue", "square"}, .box = {40, 44, 56, 64}});
  // A grid of 4 x 4: cell 0 is the circle; cell 14 (32 to 48, 48 to 64) has half of the square's.
  const auto at = [](size_t cell) {
    std::vector<float> weights(16, 0.2f / 15);
    weights[cell] = 0.8f;
    return weights;
  };
  const std::vector<std::string> texts = {"a",     "red", "circle", "is",
                                          "above", "a",   "blue",   "square"};
  std::vector<SeenWord> words;
  for (const std::string& text : texts) words.push_back({text, at(text == "square" ? 5 : 0)});
  const JudgedCaption judged =
      judge_seen_caption("a red circle is above a blue square", scene, words, {4, 4});
  EXPECT_EQ(judged.kind, CaptionKind::relation);
  EXPECT_TRUE(judged.is_true);
  EXPECT_EQ(judged.pointing.colors.words, 2);  // red, blue
  EXPECT_EQ(judged.pointing.colors.peaks_inside, 1);
  EXPECT_EQ(judged.pointing.nouns.words, 2);  // circle, square
  EXPECT_EQ(judged.pointing.nouns.peaks_inside, 1);
  // The circle is cell 0; the square covers 8 x 4 + 8 x 16 pixels of cells 10, 14 and 8 x 4 + 8 x
  // 16 of 11, 15: of 256 each 1/8, 1/2.
  const double even = 0.2 / 15, square = (0.125 + 0.5) * 2;
  EXPECT_NEAR(judged.pointing.all().mass, 2 * 0.8 + 2 * square * even, 1e-6);
  EXPECT_NEAR(judged.pointing.all().area, 2 * (256.0 + 320.0) / 4096, 1e-9);

  EXPECT_FALSE(
      judge_seen_caption("a red circle is below a blue square", scene, words, {4, 4}).is_true);
  const JudgedCaption broken = judge_seen_caption("a red circle is a", scene, {}, {4, 4});
  EXPECT_FALSE(broken.kind || broken.is_true);
  EXPECT_EQ(broken.pointing.all().words, 0);
}

constexpr size_t kKindsOfShapes = 3;  // photos alone have places

// A model that writes one token whenever it may.
struct Insisting {
  Tokenizer tokenizer;
  int32_t wanted;
  nn::Parameters parameters{5};
  std::unique_ptr<Model> made;

  Insisting(Tokenizer t, int32_t token) : tokenizer(std::move(t)), wanted(token) {
    Json config = Json::parse(R"({"model_type": "captioner", "embedding_size": 8, "hidden_size": 8,
        "memory_size": 8, "backbone_config": {"model_type": "resnet", "stem": "cifar",
        "downsample": "pool", "layer_type": "plain", "norm": "group", "norm_groups": 2,
        "embedding_size": 4, "hidden_sizes": [8, 8], "depths": [0, 0]}})");
    config["vocab_size"] = tokenizer.vocab_size();
    made = make_model(nn::Scope(parameters), config);
    for (auto& p : parameters.all()) {
      if (p->name() != "lm_head.bias") continue;
      p->value().data<float>()[wanted] = 50;
      p->changed(true);
    }
  }
  const Captioner& model() const { return *made->as<Captioner>(); }

  // What was written of each kind, in the order in which it was asked; the first is of none.
  std::vector<std::vector<int32_t>> written(int64_t longest) const {
    const auto [exam, images] = exam_of_shapes();
    return written(longest, exam, images);
  }
  static std::pair<CaptionExam, std::vector<Image>> exam_of_shapes() {
    const CaptionedSceneOptions options{.size = {32, 32}, .most_objects = 3};
    CaptionExam exam;
    std::vector<Image> images;
    for (uint64_t i = 0; exam.scenes.empty(); ++i) {
      CaptionedScene scene = draw_captioned_shapes(options, 1, i);
      std::set<CaptionKind> kinds;
      for (const std::string& text : scene.captions) kinds.insert(parse_caption(text)->kind);
      if (kinds.size() < kKindsOfShapes) continue;
      exam.add(scene.scene, scene.captions);
      images.push_back(std::move(scene.image));
    }
    return {exam, images};
  }
  std::vector<std::vector<int32_t>> written(int64_t longest, const CaptionExam& exam,
                                            const std::vector<Image>& images) const {
    std::vector<std::vector<int32_t>> all;
    TranslateOptions asked{.search = {.min_new_tokens = longest}, .longest_without_end = longest};
    asked.on_step = [&](const DecodeStep& step) {
      if (step.before[0].ids.empty()) all.emplace_back();
      const std::span<const Hypothesis> now = step.live.empty() ? step.ended : step.live;
      all.back() = now[0].ids;
    };
    score_captions(model(), tokenizer, encode_images(model(), {}, images, {}), exam, asked);
    return all;
  }
};

constexpr size_t kRelationAsked = 1 + static_cast<size_t>(CaptionKind::relation);

Tokenizer word_tokenizer() {
  return word_list_tokenizer(std::vector<std::string>{"there", "is", "are", "a", "red", "circle"});
}

// One that writes "there" alone is wrong each time it is asked, of the images in their order.
TEST(CaptionScores, captions_that_are_not_so_are_kept_with_their_image) {
  const Insisting model(word_tokenizer(), word_tokenizer().encode("there").at(0));
  auto [exam, images] = Insisting::exam_of_shapes();
  exam.add(exam.scenes[0], exam.references[0]);
  images.push_back(images[0]);
  const EncodedImages encoded = encode_images(model.model(), {}, images, {});
  TranslateOptions options{.longest_without_end = 4};
  const CaptionScores scores =
      score_captions(model.model(), model.tokenizer, encoded, exam, options);
  ASSERT_EQ(scores.wrong.size(), 2 * (1 + kKindsOfShapes));
  EXPECT_EQ(std::ssize(scores.wrong), scores.all.captions - scores.all.are_true +
                                          scores.asked().captions - scores.asked().are_true);
  for (size_t i = 0; i < scores.wrong.size(); ++i) {
    EXPECT_EQ(scores.wrong[i].image, static_cast<int64_t>(i % 2));
  }
  EXPECT_EQ(scores.wrong[0].text, scores.written[0]);
  CaptionScores more = scores;
  more += scores;  // of two other images
  ASSERT_EQ(more.wrong.size(), 2 * scores.wrong.size());
  EXPECT_EQ(more.wrong[scores.wrong.size() + 1].image, 3);
  const CaptionScores sent = dist::unpacked<CaptionScores>(dist::packed(more));
  EXPECT_EQ(sent.wrong.back().image, 3);
  EXPECT_EQ(sent.wrong.back().text, more.wrong.back().text);
}

TEST(CaptionScores, worst_images_have_most_different_wrong_captions) {
  const std::vector<WrongCaption> wrong = {{4, "a"}, {2, "a"}, {2, "a"}, {7, "b"}, {7, "a"},
                                           {1, "c"}, {4, "c"}, {2, "a"}, {9, "a"}};
  const auto all = worst_captions(wrong, 10);
  std::vector<int64_t> images;
  for (const ImageMistakes& one : all) images.push_back(one.image);
  EXPECT_EQ(images, (std::vector<int64_t>{4, 7, 1, 2, 9}));
  EXPECT_EQ(all[1].texts, (std::vector<std::string>{"b", "a"}));
  EXPECT_EQ(all[3].texts, std::vector<std::string>{"a"});
  EXPECT_EQ(worst_captions(wrong, 2).size(), 2U);
  EXPECT_TRUE(worst_captions({}, 2).empty());
}

// "there" begins the other kinds; behind the first word it is a token like any.
TEST(CaptionScores, captions_of_relations_may_not_begin_with_there_but_may_hold_it) {
  const Tokenizer words = word_tokenizer();
  const int32_t there = words.encode("there").at(0);
  const auto written = Insisting(words, there).written(5);
  ASSERT_EQ(written.size(), 1 + kKindsOfShapes);
  EXPECT_EQ(written[0], std::vector<int32_t>(5, there));
  std::vector<int32_t> is = words.encode("there is");
  is.resize(5, there);
  EXPECT_EQ(written[1], is);
  ASSERT_EQ(written[kRelationAsked].size(), 5u);
  EXPECT_NE(written[kRelationAsked][0], there);
  EXPECT_EQ(std::ranges::count(written[kRelationAsked], there), 4);
}

// Where it is several tokens, what begins with the first of them is another word.
TEST(CaptionScores, first_tokens_of_there_may_begin_captions_of_relations) {
  std::vector<std::string> captions;
  const CaptionedSceneOptions options{.size = {32, 32}, .most_objects = 3};
  for (uint64_t i = 0; i < 20; ++i) {
    for (const std::string& text : draw_captioned_shapes(options, 1, i).captions) {
      captions.push_back(text);
    }
  }
  const Tokenizer tokenizer = train_tokenizer(captions, {.vocab_size = 34, .byte_fallback = false});
  const std::vector<int32_t> there = tokenizer.encode("there");
  ASSERT_GT(there.size(), 1u);
  const auto written = Insisting(tokenizer, there[0]).written(20);
  EXPECT_EQ(written.at(kRelationAsked), std::vector<int32_t>(20, there[0]));
}

// Photos have a kind more, which "the" begins: relations may not begin with that either.
TEST(CaptionScores, places_are_asked_for_where_captions_tell_of_them) {
  const Tokenizer words = word_list_tokenizer(
      std::vector<std::string>{"there", "is", "are", "a", "the", "top", "left", "frog"});
  CaptionScene frog{.size = {32, 32}};
  frog.objects.push_back({.sort = {"", "frog"}, .box = {0, 0, 8, 8}});
  CaptionExam exam;
  exam.add(frog, {"the top left photo is labelled frog", "there is a frog", "there are two deer",
                  "a frog is above a deer"});
  const int32_t the = words.encode("the").at(0);
  const Insisting model(words, the);
  const auto written = model.written(3, exam, {Image(32, 32)});
  ASSERT_EQ(written.size(), 1 + kCaptionKinds);
  EXPECT_NE(written[kRelationAsked][0], the);
  EXPECT_EQ(written[kRelationAsked][1], the);
  EXPECT_EQ(written.back(), std::vector<int32_t>(3, the));
}

TEST(CaptionScores, lengths_without_room_for_a_beginning_are_usage_errors) {
  const Tokenizer words = word_tokenizer();
  expect_error(ErrorKind::usage, {"max_length is 1", "there is", "2 tokens"},
               [&] { Insisting(words, 5).written(1); });
}

TEST(SceneReader, scenes_are_read_and_others_are_counted) {
  SceneReader reader;
  const std::string known =
      R"({"height": 8, "width": 8, "objects": [{"color": "red", "noun": "circle",
          "bbox": [1, 1, 4, 4]}]})";
  EXPECT_EQ(reader.read({known, "a: line 1"})->objects.size(), 1u);
  EXPECT_FALSE(reader.read({"", "a: line 2"}).has_value());
  const auto said = [&] {
    ::testing::internal::CaptureStderr();
    reader.warn("eval");
    return ::testing::internal::GetCapturedStderr();
  };
  EXPECT_EQ(said(), "");
  EXPECT_FALSE(reader.read({R"({"objects": [1]})", "a: line 3"}).has_value());
  EXPECT_FALSE(reader.read({R"({"objects": []})", "a: line 4"}).has_value());
  const std::string warning = said();
  EXPECT_NE(warning.find("of 2 images"), std::string::npos) << warning;
  EXPECT_NE(warning.find("a: line 3"), std::string::npos) << warning;
}

// Where an image has more captions than 64, too.
TEST(CaptionNumbers, no_two_captions_have_the_same) {
  CaptionIds captions(4, {3, {1, 2}});
  const auto numbers_of = [&] {
    const CaptionNumbers numbers(captions);
    std::vector<uint32_t> all;
    for (size_t i = 0; i < captions.size(); ++i) {
      for (size_t c = 0; c < captions[i].size(); ++c) {
        all.push_back(numbers.of(static_cast<int64_t>(i), c));
      }
    }
    return all;
  };
  EXPECT_EQ(numbers_of()[4], 65u);  // as runs had them that are to go on in their bits
  captions[1].resize(70);
  const std::vector<uint32_t> all = numbers_of();
  EXPECT_EQ(std::set<uint32_t>(all.begin(), all.end()).size(), all.size());
}

}  // namespace
}  // namespace heddle::train
