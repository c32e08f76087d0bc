// Captioning: runs that learn, load and go on in the same bits; which captions count; data that
// does not fit.
#include <gtest/gtest.h>

#include "heddle/base/log.h"
#include "heddle/data/captions.h"
#include "heddle/infer/decoding/caption.h"
#include "heddle/train/batches/scene_files.h"
#include "heddle/train/metrics/caption_scores.h"
#include "heddle/train/tasks/model_task.h"
#include "heddle/train/trainer.h"
#include "heddle/vision/resize.h"
#include "tests/base/temporary.h"
#include "tests/train/small_run.h"

namespace heddle::train {
namespace {

constexpr const char* kBackbone =
    R"({"model_type": "resnet", "stem": "cifar", "downsample": "pool", "layer_type": "plain",
        "norm": "group", "norm_groups": 2, "embedding_size": 4, "hidden_sizes": [8, 8],
        "depths": [0, 0]})";

TrainConfig tiny_captioner(const std::string& decoder = "recurrent") {
  TrainConfig c = default_config("captioning");
  set_from_string(c, "backbone_config", kBackbone);
  c.stack.set("memory_size", 8);
  c.stack.set("hidden_size", 16);
  set_from_string(c, "decoder_type", decoder);
  if (decoder == "transformer") {
    c.stack.set("decoder_attention_heads", 2);
    c.stack.set("decoder_ffn_dim", 32);
    c.stack.set("decoder_layers", 2);
  } else {
    c.stack.set("embedding_size", 8);
  }
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

class CaptionRunBy : public CaptionRun, public ::testing::WithParamInterface<const char*> {
 protected:
  static std::string named(const std::string& name) { return name + "-" + GetParam(); }
};
INSTANTIATE_TEST_SUITE_P(Decoders, CaptionRunBy, ::testing::Values("recurrent", "transformer"));

TEST_P(CaptionRunBy, model_learns_is_judged_and_loads) {
  TrainConfig config = tiny_captioner(GetParam());
  config.max_updates = config.validate_every = 150;
  const RunResult result = train(config, named("run"));
  EXPECT_LT(result.best.loss, 2.0);  // of 36 words log 36 = 3.6, of the grammar alone 1.3
  EXPECT_GE(result.best.metric("grammatical"), 0.5);  // learnt before the scenes are
  EXPECT_LT(result.best.metric("true"), result.best.metric("grammatical"));
  EXPECT_LT(result.best.metric("peak_inside"), 1);
  const CaptionReader reader = load_captioner(path(named("run")));
  EXPECT_EQ(reader.loaded.model->head(), Head::caption);
  EXPECT_EQ(reader.processor.size, (ImageSize{32, 32}));
  EXPECT_TRUE(reader.processor.do_normalize);
  EXPECT_EQ(reader.loaded.target().decode(reader.loaded.target().encode("a red circle")),
            "a red circle");
}

// Some captions of some images an epoch, in parts of batches.
TEST_P(CaptionRunBy, run_in_two_ends_in_the_bits_of_a_whole_one) {
  TrainConfig config = tiny_captioner(GetParam());
  set_from_string(config, "captions_of_image", "2");
  config.accumulate = 3;
  const std::string whole = named("whole"), two = named("two");
  train(config, whole);
  config.max_updates = 13;
  train(config, two);
  EXPECT_NE(weights(two), weights(whole));
  config.max_updates = 20;
  train(config, two);
  EXPECT_EQ(weights(two), weights(whole));
  config.recompute = true;  // layers of a Transformer, and the weights that they leave
  train(config, named("again"));
  EXPECT_EQ(weights(named("again")), weights(whole));
}

TEST_P(CaptionRunBy, number_of_captions_and_regularisers_change_what_is_learned) {
  std::set<std::string> all;
  for (const char* captions : {"1", "2", "0"}) {
    for (const char* even : {"0", "1"}) {
      for (const char* entropy : {"0", "0.1"}) {
        TrainConfig config = tiny_captioner(GetParam());
        config.max_updates = 4;
        set_from_string(config, "captions_of_image", captions);
        set_from_string(config, "attention_regularisation", even);
        set_from_string(config, "attention_entropy", entropy);
        const std::string name = named("kind") + captions + even + entropy;
        train(config, name);
        all.insert(weights(name));
      }
    }
  }
  EXPECT_EQ(all.size(), 12U);
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
  expect_error(ErrorKind::usage, {"needs data", "images with captions"},
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
  expect_error(ErrorKind::usage, {"none of 1 held-out image", "judged_images", "select loss"},
               [&] { train(config, "plain-true", "", "plain"); });
  set_from_string(config, "judged_images", "0");
  expect_error(ErrorKind::usage, {"judged_images is 0", "select loss"},
               [&] { train(config, "none-judged"); });
}

// Of several sizes, as the cache shrinks them.
TEST_F(CaptionRun, processor_of_shrunk_images_shrinks_files_alike) {
  std::filesystem::create_directories(path("sizes"));
  const Image shown = draw_captioned_shapes(kCaptionedShapes, 1, 0).image;
  const std::vector<ImageSize> sizes = {{61, 90}, {64, 31}, {33, 20}, {9, 12}, {70, 50}};
  std::string lines;
  for (const ImageSize& size : sizes) {
    const std::string name = fmt::format("{}.png", size.height);
    const Image image = resize(shown, size.height, size.width, Resample::bilinear);
    testing::write_file(path("sizes/" + name), encode_png(image));
    lines += fmt::format("{{\"file_name\": \"{}\", \"captions\": [\"some shapes\"]}}\n", name);
  }
  testing::write_file(path("sizes/train.jsonl"), lines);
  TrainConfig config = tiny_captioner();
  config.max_updates = 1;
  set_from_string(config, "cache_edge", "20");
  train(config, "sizes-run", "", "sizes");
  const ImageProcessor processor = load_captioner(path("sizes-run")).processor;
  const CaptionSource source = find_captions(path("sizes")).train();
  const CaptionSet cached =
      cached_captions(source, "train", {.cache_dir = path("sizes-run/cache"), .cache_edge = 20});
  ASSERT_EQ(cached.size(), 5);
  for (int64_t i = 0; i < cached.size(); ++i) {
    const Image file = processor.fit(read_image(cached.path(i)));
    EXPECT_EQ(file, processor.fit(cached.image(i).rgb())) << cached.path(i);
    EXPECT_EQ(std::min(file.height, file.width), 20) << cached.path(i);
  }
}

TEST_F(CaptionRun, images_too_small_for_the_grid_are_left_out_by_name) {
  std::filesystem::create_directories(path("small"));
  std::string lines;
  for (const int64_t edge : {2, 12, 13, 14}) {
    testing::write_file(path(fmt::format("small/{}.png", edge)), encode_png(Image(edge, 16)));
    lines += fmt::format("{{\"file_name\": \"{}.png\", \"captions\": [\"some shapes\"]}}\n", edge);
  }
  testing::write_file(path("small/train.jsonl"), lines);
  testing::write_file(path("small/val.jsonl"), lines);
  TrainConfig config = tiny_captioner();
  config.max_updates = 2;
  set_log_level(LogLevel::warning);
  ::testing::internal::CaptureStderr();
  train(config, "small-run", "", "small");
  const std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("left out: 1 image that the model does not take: " + path("small/2.png") +
                      ": an image of 2 x 16 pixels is too small"),
            std::string::npos)
      << said;
  EXPECT_EQ(said.find("224"), std::string::npos) << said;
}

// Other programs have "objects" too.
TEST_F(CaptionRun, objects_that_are_no_scene_are_passed_over_with_a_warning) {
  std::filesystem::create_directories(path("foreign"));
  const CaptionedScene scene = draw_captioned_shapes(kCaptionedShapes, 1, 0);
  const std::vector<std::string> objects = {R"([{"category_id": 3, "bbox": [1, 2, 3, 4]}])", "7",
                                            R"({"a": 1})"};
  for (const char* part : {"train", "val"}) {
    std::string lines;
    for (int i = 0; i < 3; ++i) {
      const std::string name = fmt::format("{}{}.png", part, i);
      testing::write_file(path("foreign/" + name), encode_png(scene.image));
      lines += fmt::format(
          "{{\"file_name\": \"{}\", \"captions\": [\"some shapes\"], \"objects\": {}}}\n", name,
          objects[static_cast<size_t>(i)]);
    }
    testing::write_file(path(fmt::format("foreign/{}.jsonl", part)), lines);
  }
  TrainConfig config = tiny_captioner();
  config.max_updates = 2;
  set_log_level(LogLevel::warning);
  ::testing::internal::CaptureStderr();
  const RunResult result = train(config, "foreign-run", "", "foreign");
  const std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_TRUE(result.best.metrics.empty());
  EXPECT_NE(said.find("of 3 images are no scene"), std::string::npos) << said;
  EXPECT_NE(said.find("foreign/val.jsonl: line 1"), std::string::npos) << said;
}

// sacrebleu 2.6.0: BLEU().corpus_score(hypotheses, references), None where an image has fewer.
TEST(CaptionScores, bleu_is_that_of_sacrebleu_over_any_number_of_captions) {
  const std::vector<std::string> written = {"there are two red crosses",
                                            "a blue circle is above a green square",
                                            "a red cross is here today"};
  std::vector<std::vector<std::string>> known = {
      {"there are two red crosses", "two crosses are red"},
      {"a blue circle is to the left of a green square"},
      {"a red cross is above a blue circle", "there is a red cross", "a cross is here"}};
  const BleuScore bleu = caption_bleu(written, known);
  EXPECT_NEAR(bleu.score, 60.29124485786475, 1e-9);
  EXPECT_EQ(bleu.hypothesis_length, 19);
  EXPECT_EQ(bleu.reference_length, 21);
  EXPECT_TRUE(bleu.signature.starts_with("nrefs:var|case:mixed|")) << bleu.signature;
  for (auto& captions : known) captions.resize(1);
  EXPECT_TRUE(caption_bleu(written, known).signature.starts_with("nrefs:1|"));
  known[1].clear();
  expect_error(ErrorKind::data, {"no caption to compare with"},
               [&] { caption_bleu(written, known); });
}

}  // namespace
}  // namespace heddle::train
