// Images at the command line: training a classifier, exact resume, what it is asked afterwards, and
// bad input.
#include <gtest/gtest.h>

#include <filesystem>

#include "heddle/base/json/json.h"
#include "tests/cli/image_runs.h"

namespace heddle::testing {
namespace {

namespace fs = std::filesystem;

class Images : public ImageRuns {};

TEST_F(Images, classifier_learns_and_answers) {
  const CliResult trained = train("learned", {"--max-updates", "160"});
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  EXPECT_EQ(trained.err.find("warning"), trained.err.npos) << trained.err;
  const CliResult judged = run_heddle({"eval", path("learned"), "--data", path("data"), "--json"});
  ASSERT_EQ(judged.exit_code, 0) << judged.err;
  const Json report = Json::parse(judged.out);
  EXPECT_EQ(report.get_int("images"), 100);
  EXPECT_GT(report.at("accuracy").as_double(), 0.95);
  EXPECT_EQ(report.at("top5").as_double(), 1);  // of four classes
  EXPECT_LT(report.at("calibration_error").as_double(), 0.5);
  const std::string image = std::string(kFixtures) + "/images/rgb.png";
  const CliResult classified = run_heddle({"classify", path("learned"), image, image, "--json"});
  ASSERT_EQ(classified.exit_code, 0) << classified.err;
  const std::string first = classified.out.substr(0, classified.out.find('\n') + 1);
  EXPECT_EQ(classified.out, first + first);
  const Json line = Json::parse(first);
  EXPECT_EQ(line.get_string("image"), image);
  double sum = 0;
  for (const auto& [label, p] : line.at("probabilities").as_object()) sum += p.as_double();
  EXPECT_NEAR(sum, 1, 1e-6);
  const CliResult vectors = run_heddle({"embed", path("learned"), image, image, "--json"});
  ASSERT_EQ(vectors.exit_code, 0) << vectors.err;
  const std::string vector = vectors.out.substr(0, vectors.out.find('\n') + 1);
  EXPECT_EQ(vectors.out, vector + vector);
  EXPECT_EQ(Json::parse(vector).at("embedding").size(), 16u);
  EXPECT_EQ(Json::parse(vector).get_string("image"), image);
  EXPECT_NE(run_heddle({"embed", path("learned"), image, "--pooling", "mean", "--json"}).out,
            vector);
  EXPECT_TRUE(fs::exists(path("learned/report.html")));
  EXPECT_TRUE(fs::exists(path("learned/best/preprocessor_config.json")));
}

TEST_F(Images, threads_and_stops_change_no_bit) {
  ASSERT_EQ(train("whole", {"--max-updates", "40", "--threads", "1"}).exit_code, 0);
  ASSERT_EQ(train("threads", {"--max-updates", "40", "--threads", "3"}).exit_code, 0);
  EXPECT_EQ(weights("threads"), weights("whole"));
  ASSERT_EQ(train("stopped", {"--max-updates", "15"}).exit_code, 0);
  ASSERT_NE(weights("stopped"), weights("whole"));
  ASSERT_EQ(train("stopped", {"--max-updates", "40"}).exit_code, 0);
  EXPECT_EQ(weights("stopped"), weights("whole"));
}

TEST_F(Images, model_goes_on_at_another_size_with_other_classes) {
  ASSERT_EQ(train("small", {"--max-updates", "20"}).exit_code, 0);
  const CliResult tuned = run_heddle(
      {"train", "--task", "image_classification", "--from", path("small"), "--data", path("data"),
       "--out", path("larger"), "--image-edge", "20", "--max-updates", "4", "--precision", "f32"});
  ASSERT_EQ(tuned.exit_code, 0) << tuned.err;
  EXPECT_EQ(Json::load(path("larger/best/preprocessor_config.json")).at("size").get_int("height"),
            20);
}

TEST_F(Images, bad_input_is_refused_by_name) {
  ASSERT_EQ(train("model", {"--max-updates", "5"}).exit_code, 0);
  write_file(path("text.jpg"), "not an image");
  const std::string image = std::string(kFixtures) + "/images/rgb.png";
  const CliResult bad = run_heddle({"classify", path("model"), path("text.jpg")});
  EXPECT_EQ(bad.exit_code, 3);
  EXPECT_NE(bad.err.find("text.jpg"), bad.err.npos) << bad.err;
  const CliResult skipped =
      run_heddle({"classify", path("model"), path("text.jpg"), image, "--skip-bad", "--top", "1"});
  EXPECT_EQ(skipped.exit_code, 0) << skipped.err;
  EXPECT_EQ(skipped.out.find('\n'), 0u);
  EXPECT_NE(skipped.out.find("rgb.png\t"), skipped.out.npos);
  EXPECT_NE(skipped.err.find("1 of 2 images was skipped"), skipped.err.npos) << skipped.err;
  const CliResult lines =
      run_heddle({"classify", path("model"), image, path("text.jpg"), "--skip-bad", "--json"});
  const Json line = Json::parse(lines.out.substr(lines.out.find('\n') + 1));
  EXPECT_EQ(line.get_string("image"), path("text.jpg"));
  EXPECT_NE(line.get_string("error").find("text.jpg"), std::string::npos);
  for (const std::string command : {"classify", "embed"}) {
    const CliResult none = run_heddle({command, path("model"), path("text.jpg"), "--skip-bad"});
    EXPECT_EQ(none.exit_code, 3) << none.err;
    EXPECT_NE(none.err.find("none of the 1 image"), none.err.npos) << none.err;
    const CliResult without = run_heddle({command, path("model")});
    EXPECT_EQ(without.exit_code, 2) << without.err;
    EXPECT_NE(without.err.find("reads images; give one behind"), without.err.npos) << without.err;
  }
  const CliResult until = run_heddle({"classify", path("model"), image, path("text.jpg")});
  EXPECT_EQ(until.exit_code, 3);
  EXPECT_NE(until.out.find("rgb.png\t"), until.out.npos);  // what came before is answered
  fs::create_directories(path("mixed/0"));
  fs::create_directories(path("mixed/1"));
  fs::copy(image, path("mixed/0/good.png"));
  write_file(path("mixed/1/bad.png"), "not an image");
  const CliResult part = run_heddle({"eval", path("model"), "--data", path("mixed"), "--json"});
  ASSERT_EQ(part.exit_code, 0) << part.err;
  EXPECT_EQ(Json::parse(part.out).get_int("images"), 1);
  EXPECT_EQ(Json::parse(part.out).get_int("left_out"), 1);
  EXPECT_NE(part.err.find("bad.png"), part.err.npos) << part.err;
  fs::remove(path("mixed/0/good.png"));
  write_file(path("mixed/0/worse.png"), "not an image");
  const CliResult gone = run_heddle({"eval", path("model"), "--data", path("mixed")});
  EXPECT_EQ(gone.exit_code, 3) << gone.err;
  EXPECT_NE(gone.err.find("none of the 2 images could be read"), gone.err.npos) << gone.err;
  const CliResult unsaid = run_heddle({"eval", path("model")});
  EXPECT_EQ(unsaid.exit_code, 2);
  EXPECT_NE(unsaid.err.find("give labelled images as --data DIR"), unsaid.err.npos) << unsaid.err;
  EXPECT_EQ(run_heddle({"classify", path("model"), image, "--text", "words"}).exit_code, 2);
  EXPECT_EQ(run_heddle({"classify", path("model"), path("gone.png")}).exit_code, 3);
  fs::create_directory(path("empty"));
  const CliResult empty = run_heddle(
      {"train", "--task", "image_classification", "--data", path("empty"), "--out", path("none")});
  EXPECT_EQ(empty.exit_code, 3);
  EXPECT_NE(empty.err.find("empty"), empty.err.npos) << empty.err;
  EXPECT_FALSE(fs::exists(path("none")));
  const CliResult words = run_heddle({"eval", path("model"), "--data", path("text.jpg")});
  EXPECT_EQ(words.exit_code, 3) << words.err;
}

}  // namespace
}  // namespace heddle::testing
