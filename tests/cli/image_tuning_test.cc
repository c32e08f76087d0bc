// Image classifiers that begin from others: parts that are frozen, adapters, other sizes and
// classes; the images in a run's report.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "heddle/base/json/json.h"
#include "heddle/io/safetensors.h"
#include "tests/cli/image_runs.h"

namespace heddle::testing {
namespace {

namespace fs = std::filesystem;

class ImageTuning : public ImageRuns {
 protected:
  static void SetUpTestSuite() {
    ImageRuns::SetUpTestSuite();
    for (const char* type : {"vit", "deit"}) {
      ASSERT_EQ(train(type, {"--model-type", type, "--max-updates", "10"}).exit_code, 0);
    }
  }
  static CliResult tune(const std::string& from, const std::string& run,
                        const std::vector<std::string>& more) {
    std::vector<std::string> words = {"train",      "--from",
                                      path(from),   "--data",
                                      path("data"), "--out",
                                      path(run),    "--max-updates",
                                      "12",         "--precision",
                                      "f32",        "--checkpoint-every",
                                      "5",          "--validate-every",
                                      "6",          "--batch-size",
                                      "32"};
    return run_heddle(with(words, more));
  }
  // Names of the tensors in which two models differ.
  static std::vector<std::string> differing(const std::string& a, const std::string& b) {
    const auto first = SafetensorsFile::open(path(a) + "/model.safetensors");
    const auto second = SafetensorsFile::open(path(b) + "/model.safetensors");
    std::vector<std::string> names;
    for (const std::string& name : first.names()) {
      if (!std::ranges::equal(first.info(name).bytes, second.info(name).bytes)) {
        names.push_back(name);
      }
    }
    return names;
  }
};

TEST_F(ImageTuning, frozen_parts_stay_to_the_bit) {
  for (const std::string type : {"vit", "deit"}) {
    const CliResult head = tune(type, type + "-head", {"--train-only", "classifier"});
    ASSERT_EQ(head.exit_code, 0) << head.err;
    const std::vector<std::string> of_vit = {"classifier.bias", "classifier.weight"},
                                   of_deit = {"cls_classifier.bias", "cls_classifier.weight",
                                              "distillation_classifier.bias",
                                              "distillation_classifier.weight"};
    EXPECT_EQ(differing(type + "/best", type + "-head/last"), type == "vit" ? of_vit : of_deit);
    const CliResult rest = tune(type, type + "-rest", {"--freeze", "embeddings|layer\\.0"});
    ASSERT_EQ(rest.exit_code, 0) << rest.err;
    const std::vector<std::string> trained = differing(type + "/best", type + "-rest/last");
    EXPECT_FALSE(trained.empty());
    for (const std::string& name : trained) {
      EXPECT_EQ(name.find("embeddings"), name.npos) << name;
      EXPECT_EQ(name.find("layer.0."), name.npos) << name;
    }
  }
}

TEST_F(ImageTuning, adapters_train_resume_and_answer_as_the_merged_model) {
  for (const std::string type : {"vit", "deit"}) {
    const std::vector<std::string> lora = {"--lora-rank", "2", "--learning-rate", "0.01"};
    const CliResult whole = tune(type, type + "-lora", lora);
    ASSERT_EQ(whole.exit_code, 0) << whole.err;
    const CliResult part =
        tune(type, type + "-lora2",
             {"--lora-rank", "2", "--learning-rate", "0.01", "--max-updates", "7"});
    ASSERT_EQ(part.exit_code, 0) << part.err;
    ASSERT_EQ(tune(type, type + "-lora2", lora).exit_code, 0);
    EXPECT_EQ(read_file(path(type) + "-lora/last/adapter_model.safetensors"),
              read_file(path(type) + "-lora2/last/adapter_model.safetensors"));
    const Json peft = Json::load(path(type) + "-lora/last/adapter_config.json");
    EXPECT_EQ(peft.at("target_modules").as_strings(), (std::vector<std::string>{"query", "value"}));
    const CliResult exported =
        run_heddle({"export", path(type) + "-lora/last", "-o", path(type) + "-merged"});
    ASSERT_EQ(exported.exit_code, 0) << exported.err;
    EXPECT_FALSE(differing(type + "/best", type + "-merged").empty());
    const std::string image = std::string(kFixtures) + "/images/rgb.png";
    const CliResult a =
        run_heddle({"classify", path(type) + "-lora/last", image, "--json", "--precision", "f32"});
    const CliResult b =
        run_heddle({"classify", path(type) + "-merged", image, "--json", "--precision", "f32"});
    ASSERT_EQ(a.exit_code, 0) << a.err;
    EXPECT_EQ(a.out, b.out);
  }
}

// Its shape in the file of a whole model has one more axis than that in memory.
TEST_F(ImageTuning, token_that_is_trained_whole_beside_adapters_is_loaded) {
  const CliResult run = tune("vit", "vit-token", {"--lora-rank", "2", "--train-only", "cls_token"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const CliResult info = run_heddle({"info", path("vit-token") + "/last"});
  EXPECT_EQ(info.exit_code, 0) << info.err;
}

// Two of the four classes, images of another size.
TEST_F(ImageTuning, fewer_classes_and_another_size_begin_a_head_of_their_own) {
  fs::create_directory(path("halves"));
  for (const auto& [part, count] : {std::pair("train", 60U), std::pair("test", 20U)}) {
    std::string pixels(size_t{count} * 100, '\0'), labels;
    for (uint32_t i = 0; i < count; ++i) {
      labels += static_cast<char>(i % 2);
      for (size_t p = 0; p < 50; ++p) pixels[100 * i + 50 * (i % 2) + p] = '\x7f';
    }
    write_file(path("halves") + "/" + part + "-images-idx3-ubyte",
               idx_file({count, 10, 10}, pixels));
    write_file(path("halves") + "/" + part + "-labels-idx1-ubyte", idx_file({count}, labels));
  }
  for (const std::string type : {"vit", "deit"}) {
    const CliResult tuned = tune(type, type + "-halves",
                                 {"--data", path("halves"), "--image-edge", "16", "--learning-rate",
                                  "0.01", "--max-updates", "40"});
    ASSERT_EQ(tuned.exit_code, 0) << tuned.err;
    const std::string begun = type == "vit" ? "classifier" : "cls_classifier";
    EXPECT_NE(tuned.err.find("begun by the seed: " + begun), tuned.err.npos) << tuned.err;
    const CliResult judged =
        run_heddle({"eval", path(type + "-halves"), "--data", path("halves"), "--json"});
    ASSERT_EQ(judged.exit_code, 0) << judged.err;
    EXPECT_EQ(Json::parse(judged.out).at("accuracy").as_double(), 1);
    const CliResult adapted = tune(type, type + "-half-lora",
                                   {"--data", path("halves"), "--lora-rank", "2", "--learning-rate",
                                    "0.01", "--image-edge", "12"});
    ASSERT_EQ(adapted.exit_code, 0) << adapted.err;
    const CliResult read =
        run_heddle({"eval", path(type + "-half-lora"), "--data", path("halves"), "--json"});
    EXPECT_EQ(read.exit_code, 0) << read.err;
    // At another size an adapter stands on positions that are made of its model's.
    const CliResult larger = tune(
        type, type + "-larger-lora",
        {"--data", path("halves"), "--lora-rank", "2", "--image-edge", "16", "--max-updates", "4"});
    ASSERT_EQ(larger.exit_code, 0) << larger.err;
    const CliResult exported = run_heddle(
        {"export", path(type + "-larger-lora/last"), "-o", path(type + "-larger-merged")});
    ASSERT_EQ(exported.exit_code, 0) << exported.err;
    EXPECT_EQ(Json::load(path(type + "-larger-merged/config.json")).get_int("image_size"), 16);
    const std::string image = std::string(kFixtures) + "/images/rgb.png";
    const auto answers = [&](const std::string& model) {
      return run_heddle({"classify", path(model), image, "--json", "--precision", "f32"}).out;
    };
    EXPECT_EQ(answers(type + "-larger-merged"), answers(type + "-larger-lora/last"));
    EXPECT_NE(answers(type + "-larger-merged"), "");
  }
}

TEST_F(ImageTuning, report_shows_images_and_the_worst_mistakes) {
  const std::string page = read_file(path("vit/report.html"));
  EXPECT_LT(page.size(), 1'000'000U);
  const std::string names = "http://www.w3.org/";  // of SVG: nothing is fetched
  for (size_t at = 0; (at = page.find("http://", at)) != page.npos; ++at) {
    EXPECT_EQ(page.compare(at, names.size(), names), 0) << page.substr(at, 60);
  }
  const Json shown = Json::load(path("vit/cache/shown_images.json"));
  ASSERT_EQ(shown.at("augmented").size(), 6U);
  EXPECT_EQ(shown.at("augmented").as_array()[0].at("views").size(), 4U);
  ASSERT_GT(shown.at("mistakes").size(), 0U);
  double before = 1e9;
  for (const Json& mistake : shown.at("mistakes").as_array()) {
    EXPECT_NE(mistake.get_string("label"), mistake.get_string("answer"));
    EXPECT_LE(mistake.at("loss").as_double(), before);
    before = mistake.at("loss").as_double();
    // The wrong answer is at least as likely as the right one.
    EXPECT_GE(mistake.at("probability").as_double(), std::exp(-before));
    EXPECT_TRUE(mistake.at("image").get_string("src").starts_with("data:image/png;base64,iVBOR"));
  }
  EXPECT_NE(
      page.find(shown.at("mistakes").as_array()[0].at("image").get_string("src").substr(0, 60)),
      page.npos);
}

}  // namespace
}  // namespace heddle::testing
