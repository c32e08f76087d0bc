// Captioners at the command line: training on drawn shapes, exact resume, captions, their page, how
// they are judged, and models or files that do not fit.
#include <algorithm>
#include <filesystem>

#include "heddle/base/json/json.h"
#include "tests/cli/run_folder.h"
#include "tests/cli/vision_model.h"

namespace heddle::testing {
namespace {

namespace fs = std::filesystem;

constexpr const char* kBackbone =
    R"({"model_type": "resnet", "norm": "group", "norm_groups": 2, "layer_type": "plain",
        "stem": "cifar", "downsample": "pool", "embedding_size": 4, "hidden_sizes": [8, 8],
        "depths": [0, 0]})";

class CaptionCommand : public RunFolder {
 protected:
  static void SetUpTestSuite() {
    RunFolder::SetUpTestSuite();
    const CliResult drawn =
        run_heddle({"shapes", "--task", "captioning", "--out", path("set"), "--count", "24",
                    "--held-out", "6", "--size", "32", "--most-objects", "3"});
    ASSERT_EQ(drawn.exit_code, 0) << drawn.err;
    const CliResult trained = train("run", {"--max-updates", "20"});
    ASSERT_EQ(trained.exit_code, 0) << trained.err;
  }
  static CliResult train(const std::string& run, const std::vector<std::string>& more) {
    const std::vector<std::string> words = words_of(
        "train --task captioning --memory-size 8 --embedding-size 8 --hidden-size 16 "
        "--batch-size 8 --warmup-updates 5 --validate-every 10 --checkpoint-every 4 "
        "--schedule constant --precision f32 --judged-images 3");
    return run_heddle(with(
        with(words, {"--backbone-config", kBackbone, "--data", path("set"), "--out", path(run)}),
        more));
  }
  static std::string image(int number) { return path(fmt::format("set/test/00000{}.png", number)); }
};

TEST_F(CaptionCommand, threads_and_stops_change_no_bit) {
  expect_same_for_threads_and_stops(train, "bits", 14, 7);
}

TEST_F(CaptionCommand, images_get_captions_and_words_their_maps) {
  EXPECT_TRUE(fs::exists(path("run/best/preprocessor_config.json")));
  EXPECT_TRUE(fs::exists(path("run/best/tokenizer.model")));
  const CliResult plain = run_heddle({"caption", path("run"), image(1), image(2)});
  ASSERT_EQ(plain.exit_code, 0) << plain.err;
  std::istringstream lines(plain.out);
  std::string first;
  std::getline(lines, first);
  ASSERT_TRUE(first.starts_with(image(1) + "\t")) << first;
  const CliResult json = run_heddle({"caption", path("run"), image(1), "--json", "--maps"});
  ASSERT_EQ(json.exit_code, 0) << json.err;
  const Json line = Json::parse(json.out);
  EXPECT_EQ(line.get_string("text"), first.substr(image(1).size() + 1));
  EXPECT_EQ(line.at("grid").dump(), "[8, 8]");
  std::string joined;
  for (const Json& word : line.at("words").as_array()) {
    EXPECT_EQ(word.at("weights").size(), 64u);
    joined += (joined.empty() ? "" : " ") + word.get_string("text");
  }
  EXPECT_EQ(joined, line.get_string("text"));
}

TEST_F(CaptionCommand, several_captions_come_best_first_and_draws_differ) {
  const CliResult best = run_heddle({"caption", path("run"), image(1), "--n-best", "3", "--json"});
  ASSERT_EQ(best.exit_code, 0) << best.err;
  const Json line = Json::parse(best.out);
  const Json::Array& all = line.at("n_best").as_array();
  ASSERT_EQ(all.size(), 3u);
  EXPECT_GE(all[0].get_double("score"), all[1].get_double("score"));
  const std::vector<std::string> draw = {"caption", path("run"), image(1), image(1), "--sample"};
  const CliResult drawn = run_heddle(draw), again = run_heddle(draw);
  ASSERT_EQ(drawn.exit_code, 0) << drawn.err;
  EXPECT_EQ(drawn.out, again.out);
  const size_t middle = drawn.out.find('\n') + 1;
  EXPECT_NE(drawn.out.substr(0, middle), drawn.out.substr(middle));  // of one image, two draws
}

TEST_F(CaptionCommand, page_holds_images_and_weights) {
  const CliResult made =
      run_heddle({"caption", path("run"), image(1), "--page", path("page.html")});
  ASSERT_EQ(made.exit_code, 0) << made.err;
  EXPECT_NE(made.err.find("1 image in"), made.err.npos) << made.err;
  EXPECT_NE(read_file(path("page.html")).find("\"weights\""), std::string::npos);
}

TEST_F(CaptionCommand, evaluation_judges_what_the_images_show) {
  const CliResult result = run_heddle({"eval", path("run"), "--data", path("set"), "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const Json sets = Json::parse(result.out).at("sets");
  for (const char* name : {"test", "unseen"}) {
    const Json& set = sets.at(name);
    EXPECT_EQ(set.get_int("images"), 6);
    EXPECT_GT(set.get_double("ppl"), 1);
    EXPECT_EQ(set.at("written").get_int("captions"), 6);
    EXPECT_GE(set.at("kinds").at("relation").get_double("grammatical"), 0);
  }
  const CliResult text =
      run_heddle({"eval", path("run"), "--data", path("set/val.jsonl"), "--beam", "2"});
  ASSERT_EQ(text.exit_code, 0) << text.err;
  EXPECT_NE(text.out.find("asked for by kind"), text.out.npos) << text.out;
}

// Its patches are the grid, its weights stay, and its folder says how images are prepared.
TEST_F(CaptionCommand, a_checkpoint_is_what_a_captioner_looks_by) {
  write_vit(path("looks"));
  const CliResult trained =
      train("by-vit", {"--backbone", path("looks"), "--freeze", "backbone", "--max-updates", "3"});
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  const Json config = Json::load(path("by-vit/last/config.json"));
  EXPECT_EQ(config.at("backbone_config").get_string("model_type"), "vit");
  EXPECT_EQ(Json::load(path("by-vit/last/preprocessor_config.json")).at("size").get_int("height"),
            12);
  const auto theirs = SafetensorsFile::open(path("looks/model.safetensors"));
  const auto own = SafetensorsFile::open(path("by-vit/last/model.safetensors"));
  int64_t compared = 0;
  for (const std::string& name : own.names()) {
    const std::string inner = "model.backbone.";
    if (!name.starts_with(inner)) continue;
    const std::string bare = name.substr(inner.size());
    const bool has_base = std::ranges::count(theirs.names(), "vit." + bare) > 0;
    const StoredTensor &a = own.info(name), &b = theirs.info(has_base ? "vit." + bare : bare);
    EXPECT_TRUE(std::ranges::equal(a.bytes, b.bytes)) << name;
    ++compared;
  }
  EXPECT_GT(compared, 10);
  const CliResult found = run_heddle({"caption", path("by-vit"), image(1), "--json", "--maps"});
  ASSERT_EQ(found.exit_code, 0) << found.err;
  EXPECT_EQ(Json::parse(found.out).at("grid").dump(), "[3, 3]");
  expect_refused(train("both", {"--backbone", path("looks"), "--from", path("run")}), 2,
                 "give one of them");
}

TEST_F(CaptionCommand, models_and_files_that_do_not_fit_are_refused) {
  expect_refused(run_heddle({"translate", path("run"), image(1)}), 3, "reads images");
  expect_refused(run_heddle({"generate", path("run"), "--prompt", "a"}), 3, "reads images");
  expect_refused(run_heddle({"classify", path("run"), image(1)}), 3, "writes captions");
  expect_refused(run_heddle({"attention", path("run"), image(1)}), 3, "writes captions");
  expect_refused(run_heddle({"attention", path("run"), "--text", "a"}), 2, "reads images");
  expect_refused(run_heddle({"analyze", path("run")}), 3, "not counted yet");
  expect_refused(run_heddle({"caption", path("run"), path("set/val.jsonl")}), 3, "val.jsonl");
  expect_refused(run_heddle({"caption", path("run"), image(1), "--maps"}), 2, "--json");
  write_vit(path("vit"));
  expect_refused(run_heddle({"caption", path("vit"), image(1)}), 3, "writes captions of images");
  expect_refused(run_heddle({"eval", path("run")}), 2, "--data");
  expect_refused(run_heddle({"eval", path("run"), "--data", path("set"), "--views", "2"}), 2,
                 "--views");
  const CliResult blind = train("blind", {"--max-updates", "1", "--attention-scoring", "none"});
  ASSERT_EQ(blind.exit_code, 0) << blind.err;
  expect_refused(run_heddle({"caption", path("blind"), image(1), "--json", "--maps"}), 3,
                 "mean of an image");
  EXPECT_EQ(run_heddle({"caption", path("blind"), image(1)}).exit_code, 0);
}

}  // namespace
}  // namespace heddle::testing
