// Captioning: runs that learn, load and go on in the same bits; which captions count; what is
// judged; data that does not fit.
#include <gtest/gtest.h>

#include "heddle/base/log.h"
#include "heddle/infer/decoding/caption.h"
#include "heddle/train/batches/scene_files.h"
#include "heddle/train/metrics/caption_scores.h"
#include "heddle/train/trainer.h"
#include "tests/base/temporary.h"
#include "tests/train/small_run.h"

namespace heddle::train {
namespace {

constexpr const char* kBackbone =
    R"({"model_type": "resnet", "stem": "cifar", "downsample": "pool", "layer_type": "plain",
        "norm": "group", "norm_groups": 2, "embedding_size": 4, "hidden_sizes": [8, 8],
        "depths": [0, 0]})";

TrainConfig tiny_captioner() {
  TrainConfig c = default_config("captioning");
  set_from_string(c, "backbone_config", kBackbone);
  for (const char* key : {"memory_size", "embedding_size"}) c.stack.set(key, 8);
  c.stack.set("hidden_size", 16);
  testing::make_short(c);
  set_from_string(c, "judged_images", "4");
  return c;
}

class CaptionRun : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = std::make_unique<TemporaryFolder>();
    const CaptionedSceneOptions options{.size = {32, 32}, .most_objects = 3};
    const auto draw = [&](uint64_t i) { return draw_captioned_shapes(options, 1, i); };
    write_captioned_scenes(
        {.folder = *folder_ / "set", .count = 24, .part = "train", .classes = {}}, draw);
    write_captioned_scenes(
        {.folder = *folder_ / "set", .first = 24, .count = 8, .part = "val", .classes = {}}, draw);
  }
  static void TearDownTestSuite() { folder_.reset(); }
  CaptionRun() { set_log_level(LogLevel::error); }
  ~CaptionRun() override { set_log_level(LogLevel::info); }
  static std::string path(const std::string& name) { return *folder_ / name; }
  RunResult train(const TrainConfig& config, const std::string& name, const std::string& from = "",
                  const std::string& data = "set") {
    return train_model(
        config,
        {.paths = {.data = path(data), .from = from.empty() ? "" : path(from)}, .out = path(name)});
  }
  static std::string weights(const std::string& run) {
    return testing::read_file(path(run + "/last/model.safetensors"));
  }
  static inline std::unique_ptr<TemporaryFolder> folder_;
};

TEST_F(CaptionRun, model_learns_is_judged_and_loads) {
  TrainConfig config = tiny_captioner();
  config.max_updates = config.validate_every = 150;
  const RunResult result = train(config, "run");
  EXPECT_LT(result.best.loss, 2.0);  // of 36 words log 36 = 3.6, of the grammar alone 1.3
  EXPECT_GE(result.best.metric("true"), 0);
  EXPECT_GE(result.best.metric("grammatical"), 0);
  EXPECT_GE(result.best.metric("peak_inside"), 0);
  const CaptionReader reader = load_captioner(path("run"));
  EXPECT_EQ(reader.loaded.model->head(), Head::caption);
  EXPECT_EQ(reader.processor.size, (ImageSize{32, 32}));
  EXPECT_TRUE(reader.processor.do_normalize);
  EXPECT_EQ(reader.loaded.target().decode(reader.loaded.target().encode("a red circle")),
            "a red circle");
}

// Some captions of some images an epoch, in parts of batches.
TEST_F(CaptionRun, run_in_two_ends_in_the_bits_of_a_whole_one) {
  TrainConfig config = tiny_captioner();
  set_from_string(config, "captions_of_image", "2");
  config.accumulate = 3;
  train(config, "whole");
  config.max_updates = 13;
  train(config, "two");
  EXPECT_NE(weights("two"), weights("whole"));
  config.max_updates = 20;
  train(config, "two");
  EXPECT_EQ(weights("two"), weights("whole"));
}

TEST_F(CaptionRun, number_of_captions_and_regulariser_change_what_is_learned) {
  std::set<std::string> all;
  for (const char* captions : {"1", "2", "0"}) {
    for (const char* strength : {"0", "1"}) {
      TrainConfig config = tiny_captioner();
      config.max_updates = 4;
      set_from_string(config, "captions_of_image", captions);
      set_from_string(config, "attention_regularisation", strength);
      const std::string name = std::string("kind") + captions + strength;
      train(config, name);
      all.insert(weights(name));
    }
  }
  EXPECT_EQ(all.size(), 6U);
}

TEST_F(CaptionRun, weights_that_are_frozen_stay) {
  train(tiny_captioner(), "base");
  TrainConfig config = tiny_captioner();
  config.stack = config_of_model(path("base"));
  config.freeze = R"(^model\.backbone\.)";
  train(config, "tuned", "base");
  const LoadedModel before = load_model(path("base/best")), after = load_model(path("tuned/last"));
  int64_t same = 0, changed = 0;
  for (size_t i = 0; i < before.parameters.all().size(); ++i) {
    const nn::Parameter &a = *before.parameters.all()[i], &b = *after.parameters.all()[i];
    const bool is_same = a.value().to_floats() == b.value().to_floats();
    const bool is_frozen = a.name().starts_with("model.backbone.");
    EXPECT_TRUE(is_same || !is_frozen) << a.name();
    (is_same ? same : changed) += 1;
  }
  EXPECT_GT(same, 0);
  EXPECT_GT(changed, 5);
}

TEST_F(CaptionRun, what_does_not_fit_is_refused) {
  TrainConfig config = tiny_captioner();
  expect_error(ErrorKind::usage, {"`data`", "images with captions"},
               [&] { train_model(config, {.out = path("none")}); });
  expect_error(ErrorKind::data, {"nowhere"}, [&] { train(config, "none", "", "nowhere"); });
  // Captions that nothing can be checked by have a loss, and no truth.
  const CaptionedScene scene = draw_captioned_shapes(kCaptionedShapes, 1, 0);
  std::filesystem::create_directories(path("plain"));
  testing::write_file(path("plain/1.png"), encode_png(scene.image));
  std::string lines;
  for (int i = 0; i < 6; ++i) {
    testing::write_file(path(fmt::format("plain/{}.png", i)), encode_png(scene.image));
    lines += fmt::format("{{\"file_name\": \"{}.png\", \"captions\": [\"some shapes\"]}}\n", i);
  }
  testing::write_file(path("plain/train.jsonl"), lines);
  EXPECT_TRUE(train(config, "plain-run", "", "plain").best.metrics.empty());
  config.select = "true";
  expect_error(ErrorKind::usage, {"`select` loss"},
               [&] { train(config, "plain-true", "", "plain"); });
}

// --- judging -------------------------------------------------------------------------------------

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
  EXPECT_TRUE(judged.is_grammatical && judged.is_true);
  EXPECT_EQ(judged.pointing.words, 4);  // red, circle, blue, square
  EXPECT_EQ(judged.pointing.peaks_inside, 2);
  // The circle is cell 0; the square covers 8 x 4 + 8 x 16 pixels of cells 10, 14 and 8 x 4 + 8 x
  // 16 of 11, 15: of 256 each 1/8, 1/2.
  const double even = 0.2 / 15, square = (0.125 + 0.5) * 2;
  EXPECT_NEAR(judged.pointing.mass, 2 * 0.8 + 2 * square * even, 1e-6);
  EXPECT_NEAR(judged.pointing.area, 2 * (256.0 + 320.0) / 4096, 1e-9);

  EXPECT_FALSE(
      judge_seen_caption("a red circle is below a blue square", scene, words, {4, 4}).is_true);
  const JudgedCaption broken = judge_seen_caption("a red circle is a", scene, {}, {4, 4});
  EXPECT_FALSE(broken.is_grammatical || broken.is_true);
  EXPECT_EQ(broken.pointing.words, 0);
}

}  // namespace
}  // namespace heddle::train
