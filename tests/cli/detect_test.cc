// Detectors at the command line: training on drawn shapes, exact resume, what
// they are asked afterwards, and bad input.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "heddle/base/json/json.h"
#include "tests/support/cli_runner.h"

namespace heddle::testing {
namespace {

namespace fs = std::filesystem;

constexpr const char* kBackbone =
    R"({"model_type": "resnet", "norm": "group", "norm_groups": 4, "layer_type": "basic",
        "embedding_size": 8, "hidden_sizes": [8, 16], "depths": [1, 1]})";

class Detect : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { folder_ = std::make_unique<TempDir>(); }
  static void TearDownTestSuite() { folder_.reset(); }
  static std::string path(const std::string& name) { return (*folder_ / name).string(); }

  static CliResult train(const std::string& run, const std::vector<std::string>& more) {
    std::vector<std::string> words = {"train",
                                      "--task",
                                      "object_detection",
                                      "--out",
                                      path(run),
                                      "--drawn",
                                      "shapes",
                                      "--drawn-images",
                                      "40",
                                      "--drawn-held-out",
                                      "6",
                                      "--drawn-height",
                                      "64",
                                      "--drawn-width",
                                      "80",
                                      "--backbone-config",
                                      kBackbone,
                                      "--d-model",
                                      "16",
                                      "--num-queries",
                                      "10",
                                      "--encoder-layers",
                                      "1",
                                      "--decoder-layers",
                                      "2",
                                      "--encoder-ffn-dim",
                                      "24",
                                      "--decoder-ffn-dim",
                                      "24",
                                      "--encoder-attention-heads",
                                      "2",
                                      "--decoder-attention-heads",
                                      "2",
                                      "--batch-size",
                                      "8",
                                      "--warmup-updates",
                                      "5",
                                      "--schedule",
                                      "constant",
                                      "--learning-rate",
                                      "0.001",
                                      "--validate-every",
                                      "10",
                                      "--checkpoint-every",
                                      "4",
                                      "--precision",
                                      "f32",
                                      "--dropout",
                                      "0.1"};
    for (size_t i = 0; i + 1 < more.size(); i += 2) {  // in place of what is there
      const auto at = std::ranges::find(words, more[i]);
      if (at != words.end()) words.erase(at, at + 2);
      words.insert(words.end(), {more[i], more[i + 1]});
    }
    return run_heddle(words);
  }
  static std::string weights(const std::string& run) {
    return read_file(path(run) + "/last/model.safetensors");
  }

 private:
  static inline std::unique_ptr<TempDir> folder_;
};

TEST_F(Detect, detector_is_trained_judged_and_asked) {
  const CliResult trained = train("run", {"--max-updates", "20"});
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  EXPECT_NE(trained.err.find("does not look at its images"), trained.err.npos) << trained.err;
  EXPECT_TRUE(fs::exists(path("run/report.html")));
  EXPECT_TRUE(fs::exists(path("run/best/preprocessor_config.json")));
  EXPECT_EQ(Json::load(path("run/best/config.json")).at("architectures").as_strings(),
            std::vector<std::string>{"DetrForObjectDetection"});
  const std::string image = std::string(kFixtures) + "/images/rgb.png";
  const CliResult found = run_heddle(
      {"detect", path("run"), image, "--json", "--threshold", "0", "--page", path("page.html")});
  ASSERT_EQ(found.exit_code, 0) << found.err;
  const Json line = Json::parse(found.out);
  EXPECT_EQ(line.get_string("image"), image);
  ASSERT_GT(line.at("objects").size(), 0u);
  const double width = line.get_double("width"), height = line.get_double("height");
  // What looks where: the same objects, in the order of the queries.
  const CliResult looked = run_heddle({"attention", path("run"), image, "--json"});
  ASSERT_EQ(looked.exit_code, 0) << looked.err;
  std::vector<double> scores, of_queries;
  for (const Json& one : line.at("objects").as_array()) scores.push_back(one.get_double("score"));
  const Json of_looked = Json::parse(looked.out);
  for (const Json& one : of_looked.at("objects").as_array()) {
    of_queries.push_back(one.get_double("score"));
    EXPECT_EQ(one.at("box").size(), 4u);
  }
  std::ranges::sort(of_queries, std::greater());
  ASSERT_EQ(of_queries.size(), scores.size());
  for (size_t i = 0; i < scores.size(); ++i) EXPECT_NEAR(of_queries[i], scores[i], 1e-4);
  double last = 1;
  for (const Json& one : line.at("objects").as_array()) {
    EXPECT_LE(one.get_double("score"), last);
    last = one.get_double("score");
    const Json::Array& box = one.at("box").as_array();
    EXPECT_GE(box[0].as_double(), 0);
    EXPECT_LT(box[0].as_double(), box[2].as_double());
    EXPECT_LE(box[2].as_double(), width);
    EXPECT_LT(box[1].as_double(), box[3].as_double());
    EXPECT_LE(box[3].as_double(), height);
  }
  EXPECT_TRUE(fs::exists(path("page.html")));
  EXPECT_EQ(run_heddle({"detect", path("run"), image, "--threshold", "1"}).out, "");
}

TEST_F(Detect, swin_stands_below_a_detector) {
  const std::string swin =
      R"({"model_type": "swin", "image_size": 64, "patch_size": 4, "embed_dim": 8,
          "depths": [1, 2], "num_heads": [2, 2], "window_size": 4})";
  const std::vector<std::string> words = {"--backbone-config", swin, "--max-updates", "4"};
  ASSERT_EQ(train("swin", words).exit_code, 0);
  const auto with_threads = [&](const std::string& n) {
    std::vector<std::string> more = words;
    more.insert(more.end(), {"--threads", n});
    return more;
  };
  ASSERT_EQ(train("swin3", with_threads("3")).exit_code, 0);
  EXPECT_EQ(weights("swin3"), weights("swin"));
  const std::string image = std::string(kFixtures) + "/images/rgb.png";
  const CliResult found = run_heddle({"detect", path("swin"), image, "--threshold", "0"});
  EXPECT_EQ(found.exit_code, 0) << found.err;
  EXPECT_EQ(std::ranges::count(found.out, '\n'), 10);  // as many as there are queries
}

TEST_F(Detect, explained_call_is_the_last_of_its_kind_and_queries_are_of_no_cell) {
  ASSERT_EQ(train("explained", {"--max-updates", "1"}).exit_code, 0);
  const std::string image = std::string(kFixtures) + "/images/rgb.png";
  const auto explain = [&](std::vector<std::string> flags) {
    flags.insert(flags.begin(), {"explain", path("explained"), image});
    return run_heddle(flags);
  };
  const CliResult heads =
      run_heddle({"attention", path("explained"), image, "--no-importance", "--json"});
  ASSERT_EQ(heads.exit_code, 0) << heads.err;
  const Json looked = Json::parse(heads.out);
  for (const Json& head : looked.at("heads").as_array()) {
    const bool is_encoder = head.get_string("title").starts_with("encoder");
    EXPECT_EQ(head.at("distance").is_null(), !is_encoder) << head.get_string("title");
  }
  const CliResult last = explain({});
  ASSERT_EQ(last.exit_code, 0) << last.err;
  EXPECT_NE(last.out.find("cross layer 1, head 0"), last.out.npos) << last.out;
  EXPECT_EQ(last.out.find("query query"), last.out.npos) << last.out;
  const CliResult encoder = explain({"--kind", "encoder", "--cell", "0,0"});
  ASSERT_EQ(encoder.exit_code, 0) << encoder.err;
  EXPECT_NE(encoder.out.find("encoder layer 0, head 0 (of layers 0 to 0"), encoder.out.npos)
      << encoder.out;
  EXPECT_NE(encoder.out.find("query row 0, column 0"), encoder.out.npos) << encoder.out;
  const CliResult decoder = explain({"--kind", "decoder", "--layer", "0"});
  ASSERT_EQ(decoder.exit_code, 0) << decoder.err;
  EXPECT_NE(decoder.out.find("decoder layer 0"), decoder.out.npos) << decoder.out;
  const CliResult cell = explain({"--cell", "0,0"});
  EXPECT_EQ(cell.exit_code, 2);
  EXPECT_NE(cell.err.find("are of no cell; leave --cell out"), cell.err.npos) << cell.err;
  EXPECT_EQ(explain({"--kind", "self"}).exit_code, 2);
}

TEST_F(Detect, noised_queries_are_trained_in_the_formats_of_the_machine) {
  for (const char* precision : {"f32", "auto"}) {
    const CliResult trained = train(std::string("noised-") + precision,
                                    {"--max-updates", "3", "--denoising-groups", "2", "--precision",
                                     precision, "--recompute", "true"});
    EXPECT_EQ(trained.exit_code, 0) << precision << ": " << trained.err;
  }
}

TEST_F(Detect, additions_are_trained_together_and_read_back) {
  const std::vector<std::string> additions = {
      "--conditional-queries", "true", "--class-loss",  "mal", "--dense-targets", "3",
      "--denoising-groups",    "2",    "--max-updates", "6"};
  const auto with = [&](const std::string& flag, const std::string& value) {
    std::vector<std::string> words = additions;
    words.insert(words.end(), {flag, value});
    return words;
  };
  const CliResult trained = train("additions", with("--threads", "1"));
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  EXPECT_EQ(trained.err.find("does not look at its images"), trained.err.npos) << trained.err;
  ASSERT_EQ(train("additions3", with("--threads", "3")).exit_code, 0);
  EXPECT_EQ(weights("additions3"), weights("additions"));
  const Json config = Json::load(path("additions/last/config.json"));
  EXPECT_EQ(config.get_string("class_loss"), "mal");
  EXPECT_TRUE(config.at("conditional_queries").as_bool());
  const std::string image = std::string(kFixtures) + "/images/rgb.png";
  const CliResult looked = run_heddle({"attention", path("additions"), image, "--json"});
  ASSERT_EQ(looked.exit_code, 0) << looked.err;
  const CliResult explained = run_heddle({"explain", path("additions"), image, "--head", "1"});
  ASSERT_EQ(explained.exit_code, 0) << explained.err;
  EXPECT_NE(explained.out.find("cross layer 1, head 1"), explained.out.npos) << explained.out;
  const CliResult found =
      run_heddle({"detect", path("additions"), image, "--json", "--threshold", "0"});
  ASSERT_EQ(found.exit_code, 0) << found.err;
  const Json line = Json::parse(found.out);
  for (const Json& one : line.at("objects").as_array()) {
    EXPECT_GT(one.get_double("score"), 0);
    EXPECT_LT(one.get_double("score"), 1);
  }
  const CliResult exported =
      run_heddle({"export", path("additions"), "--out", path("additions-exported")});
  ASSERT_EQ(exported.exit_code, 0) << exported.err;
  const std::string said = exported.out + exported.err;
  EXPECT_NE(said.find("conditional_queries true"), said.npos) << said;
  EXPECT_NE(said.find("class_loss mal"), said.npos) << said;
}

TEST_F(Detect, threads_and_stops_change_no_bit) {
  ASSERT_EQ(train("whole", {"--max-updates", "12", "--threads", "1"}).exit_code, 0);
  ASSERT_EQ(train("threads", {"--max-updates", "12", "--threads", "3"}).exit_code, 0);
  EXPECT_EQ(weights("threads"), weights("whole"));
  ASSERT_EQ(train("stopped", {"--max-updates", "7"}).exit_code, 0);
  ASSERT_NE(weights("stopped"), weights("whole"));
  ASSERT_EQ(train("stopped", {"--max-updates", "12"}).exit_code, 0);
  EXPECT_EQ(weights("stopped"), weights("whole"));
}

TEST_F(Detect, threads_and_stops_change_no_bit_of_what_restores_noise) {
  const auto train_noised = [](const std::string& run, std::vector<std::string> more) {
    more.insert(more.end(), {"--denoising-groups", "2"});
    const CliResult trained = train(run, more);
    ASSERT_EQ(trained.exit_code, 0) << trained.err;
  };
  train_noised("noised", {"--max-updates", "8", "--threads", "1"});
  train_noised("noised3", {"--max-updates", "8", "--threads", "3"});
  EXPECT_EQ(weights("noised3"), weights("noised"));
  train_noised("noised-on", {"--max-updates", "5"});
  ASSERT_NE(weights("noised-on"), weights("noised"));
  train_noised("noised-on", {"--max-updates", "8"});
  EXPECT_EQ(weights("noised-on"), weights("noised"));
}

TEST_F(Detect, model_goes_on_with_other_classes_at_another_size) {
  ASSERT_EQ(train("first", {"--max-updates", "4"}).exit_code, 0);
  const CliResult tuned = run_heddle({"train",
                                      "--task",
                                      "object_detection",
                                      "--from",
                                      path("first"),
                                      "--drawn",
                                      "cells",
                                      "--drawn-images",
                                      "8",
                                      "--drawn-held-out",
                                      "2",
                                      "--drawn-height",
                                      "96",
                                      "--drawn-width",
                                      "128",
                                      "--shortest-edge",
                                      "64",
                                      "--max-updates",
                                      "2",
                                      "--precision",
                                      "f32",
                                      "--backbone-learning-rate-factor",
                                      "0.1",
                                      "--out",
                                      path("tuned")});
  ASSERT_EQ(tuned.exit_code, 0) << tuned.err;
  EXPECT_NE(tuned.err.find("class_labels_classifier"), tuned.err.npos) << tuned.err;
  EXPECT_EQ(
      Json::load(path("tuned/best/preprocessor_config.json")).at("size").get_int("shortest_edge"),
      64);
  EXPECT_EQ(Json::load(path("tuned/best/config.json")).at("id2label").size(), 3u);
}

TEST_F(Detect, more_objects_than_queries_are_warned_of) {
  const CliResult few = train("few", {"--max-updates", "1", "--num-queries", "2"});
  ASSERT_EQ(few.exit_code, 0) << few.err;
  EXPECT_NE(few.err.find("it can never find more"), few.err.npos) << few.err;
  EXPECT_NE(few.err.find("give --num-queries "), few.err.npos) << few.err;
}

TEST_F(Detect, table_is_judged_by_the_names_of_its_classes) {
  ASSERT_EQ(train("judge", {"--max-updates", "1"}).exit_code, 0);
  fs::create_directories(path("table/images"));
  fs::copy_file(std::string(kFixtures) + "/images/rgb.png", path("table/images/a.png"));
  write_file(path("table/images.tsv"), "split\timage\ntest\ta\n");
  const std::string header = "split\timage\tclass\txmin\tymin\txmax\tymax\n";
  write_file(path("table/boxes.tsv"), header + "test\ta\t0\t2\t2\t9999\t9\n");
  const auto classes_with_objects = [&] {
    const CliResult judged = run_heddle({"eval", path("judge"), "--data", path("table"), "--json"});
    EXPECT_EQ(judged.exit_code, 0) << judged.err;
    EXPECT_NE(judged.err.find("1 box clipped to the image"), judged.err.npos) << judged.err;
    std::vector<std::string> names;
    const Json line = Json::parse(judged.out);
    for (const auto& [name, scores] : line.at("classes").as_object()) {
      if (scores.get_double("map") >= 0) names.push_back(name);
    }
    return names;
  };
  EXPECT_EQ(classes_with_objects(), std::vector<std::string>{"circle"});
  write_file(path("table/classes.txt"), "ring\ncircle\n");
  EXPECT_EQ(classes_with_objects(), std::vector<std::string>{"ring"});
  write_file(path("table/boxes.tsv"), header);
  const CliResult empty = run_heddle({"eval", path("judge"), "--data", path("table")});
  EXPECT_EQ(empty.exit_code, 0) << empty.err;
  EXPECT_NE(empty.err.find("nothing to find"), empty.err.npos) << empty.err;
  EXPECT_TRUE(empty.out.starts_with("mAP none, mAP50 none")) << empty.out;
  EXPECT_EQ(empty.out.find('-'), empty.out.npos) << empty.out;
  fs::remove(path("table/classes.txt"));
  write_file(path("table/boxes.tsv"), header + "test\ta\t6\t2\t2\t9\t9\n");
  const CliResult many = run_heddle({"eval", path("judge"), "--data", path("table")});
  EXPECT_EQ(many.exit_code, 3);
  EXPECT_NE(many.err.find("the model has 6"), many.err.npos) << many.err;
  EXPECT_EQ(many.err.find("class_names"), many.err.npos) << many.err;
}

TEST_F(Detect, processor_that_crops_is_refused) {
  ASSERT_EQ(train("crops", {"--max-updates", "1"}).exit_code, 0);
  const std::string file = path("crops/best/preprocessor_config.json");
  Json prepared = Json::load(file);
  prepared["do_center_crop"] = true;
  prepared["crop_size"] = Json::object({{"height", 32}, {"width", 32}});
  write_file(file, prepared.dump());
  const std::string image = std::string(kFixtures) + "/images/rgb.png";
  const auto tuned = [&](const std::vector<std::string>& more) {
    std::vector<std::string> words = {"train",
                                      "--task",
                                      "object_detection",
                                      "--from",
                                      path("crops/best"),
                                      "--drawn",
                                      "shapes",
                                      "--drawn-images",
                                      "4",
                                      "--drawn-held-out",
                                      "2",
                                      "--drawn-height",
                                      "64",
                                      "--drawn-width",
                                      "64",
                                      "--max-updates",
                                      "1",
                                      "--precision",
                                      "f32",
                                      "--out",
                                      path("crops-on")};
    words.insert(words.end(), more.begin(), more.end());
    return run_heddle(words);
  };
  for (const CliResult& refused : {run_heddle({"detect", path("crops"), image}), tuned({})}) {
    EXPECT_EQ(refused.exit_code, 3) << refused.err;
    EXPECT_NE(refused.err.find("crops images; boxes would lie elsewhere"), refused.err.npos)
        << refused.err;
  }
  const CliResult resized = tuned({"--shortest-edge", "64"});  // which crops nothing
  EXPECT_EQ(resized.exit_code, 0) << resized.err;
}

TEST_F(Detect, settings_without_effect_are_refused) {
  const CliResult held_out = train("none", {"--val-data", path("none.json")});
  EXPECT_EQ(held_out.exit_code, 2);
  EXPECT_NE(held_out.err.find("--drawn-held-out"), held_out.err.npos) << held_out.err;
  const CliResult edge = train("none", {"--longest-edge", "100"});
  EXPECT_EQ(edge.exit_code, 2);
  EXPECT_NE(edge.err.find("--shortest-edge"), edge.err.npos) << edge.err;
  EXPECT_FALSE(fs::exists(path("none")));
}

TEST_F(Detect, bad_input_is_refused_by_name) {
  ASSERT_EQ(train("model", {"--max-updates", "1"}).exit_code, 0);
  write_file(path("text.jpg"), "not an image");
  const std::string image = std::string(kFixtures) + "/images/rgb.png";
  const CliResult bad = run_heddle({"detect", path("model"), path("text.jpg")});
  EXPECT_EQ(bad.exit_code, 3);
  EXPECT_NE(bad.err.find("text.jpg"), bad.err.npos) << bad.err;
  EXPECT_EQ(run_heddle({"detect", path("model"), path("text.jpg"), image, "--skip-bad"}).exit_code,
            0);
  EXPECT_EQ(run_heddle({"detect", path("model"), path("text.jpg"), "--skip-bad"}).exit_code, 3);
  EXPECT_EQ(run_heddle({"detect", path("model"), path("gone.png")}).exit_code, 3);
  const CliResult cls = run_heddle({"embed", path("model"), image, "--pooling", "cls"});
  EXPECT_EQ(cls.exit_code, 2) << cls.err;
  EXPECT_NE(cls.err.find("has no class token; take --pooling mean"), cls.err.npos) << cls.err;
  const CliResult views =
      run_heddle({"eval", path("model"), "--data", path("gone"), "--views", "2"});
  EXPECT_EQ(views.exit_code, 2) << views.err;
  EXPECT_EQ(run_heddle({"detect", path("model"), image, "--threshold", "2"}).exit_code, 2);
  const CliResult vit = run_heddle({"detect", std::string(kFixtures) + "/texts/fill", image});
  EXPECT_EQ(vit.exit_code, 3) << vit.err;
  const CliResult grey = train("grey", {"--max-updates", "1", "--num-channels", "1"});
  EXPECT_EQ(grey.exit_code, 2) << grey.err;
  EXPECT_NE(grey.err.find("give --num-channels 3"), grey.err.npos) << grey.err;
  EXPECT_FALSE(fs::exists(path("grey")));
  const CliResult neither =
      run_heddle({"train", "--task", "object_detection", "--out", path("none")});
  EXPECT_EQ(neither.exit_code, 2) << neither.err;
  const CliResult backbone =
      train("odd", {"--max-updates", "1", "--backbone-config", R"({"model_type": "bert"})"});
  EXPECT_EQ(backbone.exit_code, 3) << backbone.err;
  EXPECT_FALSE(fs::exists(path("odd")));
  EXPECT_EQ(train("odd", {"--backbone-config", "{"}).exit_code, 2);
}

}  // namespace
}  // namespace heddle::testing
