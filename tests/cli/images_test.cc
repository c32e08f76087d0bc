// Images at the command line: training a classifier, exact resume, what it is asked afterwards, and
// bad input.
#include <gtest/gtest.h>

#include <filesystem>

#include "heddle/base/json/json.h"
#include "heddle/infer/image_batch.h"
#include "heddle/io/safetensors.h"
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
  EXPECT_EQ(report.get_string("part"), "test");
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
  const CliResult mean =
      run_heddle({"embed", path("learned"), image, "--pooling", "mean", "--json"});
  ASSERT_EQ(mean.exit_code, 0) << mean.err;
  EXPECT_NE(mean.out, vector);
  EXPECT_TRUE(fs::exists(path("learned/report.html")));
  EXPECT_TRUE(fs::exists(path("learned/best/preprocessor_config.json")));
}

// Patches alone, whose mean is classified, with positions of columns and rows.
TEST_F(Images, classifier_without_a_class_token_learns_answers_and_goes_on_at_another_size) {
  const std::vector<std::string> pooled = {"--pooling",
                                           "mean",
                                           "--class-token",
                                           "false",
                                           "--norm-after-pooling",
                                           "true",
                                           "--two-dimensional-positions",
                                           "true",
                                           "--max-updates",
                                           "160"};
  const CliResult trained = train("mean", pooled);
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  const CliResult judged = run_heddle({"eval", path("mean"), "--data", path("data"), "--json"});
  ASSERT_EQ(judged.exit_code, 0) << judged.err;
  EXPECT_GT(Json::parse(judged.out).at("accuracy").as_double(), 0.95);
  const std::string image = std::string(kFixtures) + "/images/rgb.png";
  const CliResult vectors = run_heddle({"embed", path("mean"), image, "--json"});
  ASSERT_EQ(vectors.exit_code, 0) << vectors.err;
  EXPECT_EQ(run_heddle({"embed", path("mean"), image, "--pooling", "mean", "--json"}).out,
            vectors.out);
  expect_refused(run_heddle({"embed", path("mean"), image, "--pooling", "cls"}), 2,
                 "has no class token");
  // Nor has the mean that is classified where there is one anything of it.
  ASSERT_EQ(train("token", {"--pooling", "mean", "--max-updates", "2"}).exit_code, 0);
  const ImageReader reader = load_image_reader(path("token"));
  const Image fitted = reader.processor.fit(read_image(image));
  const ImageBatch batch({&fitted, 1}, reader.processor);
  const NoGrad off;
  const std::vector<float> states = reader.model().hidden(batch.rows(), {}).to_floats();
  const size_t width = static_cast<size_t>(reader.model().width()), rows = states.size() / width;
  const Json embedded =
      Json::parse(run_heddle({"embed", path("token"), image, "--json", "--precision", "f32"}).out);
  for (size_t c = 0; c < width; ++c) {
    double sum = 0;
    for (size_t r = 1; r < rows; ++r) sum += states[r * width + c];
    EXPECT_NEAR(embedded.at("embedding").as_array()[c].as_double(),
                sum / static_cast<double>(rows - 1), 1e-5);
  }
  const CliResult exported = run_heddle({"export", path("mean"), "--out", path("mean-exported")});
  ASSERT_EQ(exported.exit_code, 0) << exported.err;
  EXPECT_NE((exported.out + exported.err).find("no two_dimensional_positions true, pooling mean"),
            std::string::npos)
      << exported.out << exported.err;
  expect_refused(run_heddle({"export", path("mean"), "--format", "timm", "--out", path("none")}), 3,
                 "two_dimensional_positions");
  const CliResult tuned =
      run_heddle({"train", "--task", "image_classification", "--from", path("mean"), "--data",
                  path("data"), "--out", path("mean-larger"), "--image-edge", "20", "--max-updates",
                  "4", "--precision", "f32"});
  ASSERT_EQ(tuned.exit_code, 0) << tuned.err;
  EXPECT_NE(tuned.err.find("positions are interpolated"), tuned.err.npos) << tuned.err;
  const auto weights = SafetensorsFile::open(path("mean-larger/best/model.safetensors"));
  const std::vector<int64_t> columns = {5, 8};
  EXPECT_EQ(weights.info("vit.embeddings.column_embeddings").shape, columns);
  expect_refused(train("none", {"--class-token", "false", "--max-updates", "1"}), 3,
                 "pooling mean");
  EXPECT_FALSE(fs::exists(path("none")));
}

TEST_F(Images, part_to_test_on_is_judged_before_that_to_validate_on_and_named) {
  ASSERT_EQ(train("parts", {"--max-updates", "1"}).exit_code, 0);
  fs::create_directory(path("both"));
  write_quarters(path("both"), "val", 8);
  const std::vector<std::string> judge = {"eval", path("parts"), "--data", path("both")};
  const CliResult val = run_heddle(judge);
  EXPECT_TRUE(val.out.starts_with("val: accuracy ")) << val.out << val.err;
  EXPECT_NE(val.out.find("(8 images, "), val.out.npos) << val.out;
  write_quarters(path("both"), "test", 12);
  const CliResult test = run_heddle(judge);
  EXPECT_TRUE(test.out.starts_with("test: accuracy ")) << test.out << test.err;
  EXPECT_NE(test.out.find("(12 images, "), test.out.npos) << test.out;
}

TEST_F(Images, settings_that_would_do_nothing_are_refused) {
  const auto refused = [](const std::vector<std::string>& flags, const std::string& words) {
    expect_refused(train("none", with(flags, {"--max-updates", "1"})), 2, words);
  };
  refused({"--rand-augment-magnitude", "4"}, "are for --auto-augment rand_augment");
  refused({"--mixup-alpha", "0", "--mix-probability", "0.5"}, "for batches that are mixed");
  refused({"--mixup-alpha", "0", "--mix-until", "0.5"}, "for batches that are mixed");
  ASSERT_EQ(train("teacher", {"--max-updates", "1"}).exit_code, 0);
  refused({"--teacher", path("teacher"), "--teacher-temperature", "2"}, "is for --teaching soft");
  EXPECT_FALSE(fs::exists(path("none")));
}

TEST_F(Images, threads_and_stops_change_no_bit) {
  expect_same_for_threads_and_stops(train, "whole", 40, 15);
}

TEST_F(Images, batch_is_mixed_alike_in_any_number_of_parts) {
  const auto norm = [](const std::string& run, const std::string& parts) {
    const CliResult trained = train(run, {"--max-updates", "1", "--log-every", "1", "--accumulate",
                                          parts, "--mixup-alpha", "1", "--cutmix-alpha", "1"});
    EXPECT_EQ(trained.exit_code, 0) << trained.err;
    const std::string log = read_file(path(run) + "/log.jsonl");
    return Json::parse(log.substr(0, log.find('\n'))).get_double("gradient_norm");
  };
  const double whole = norm("unparted", "1");
  EXPECT_NEAR(norm("parted", "3"), whole, 1e-4 * whole);
}

TEST_F(Images, model_goes_on_at_another_size) {
  ASSERT_EQ(train("small", {"--max-updates", "20"}).exit_code, 0);
  const CliResult tuned = run_heddle(
      {"train", "--task", "image_classification", "--from", path("small"), "--data", path("data"),
       "--out", path("larger"), "--image-edge", "20", "--max-updates", "4", "--precision", "f32"});
  ASSERT_EQ(tuned.exit_code, 0) << tuned.err;
  EXPECT_EQ(Json::load(path("larger/best/preprocessor_config.json")).at("size").get_int("height"),
            20);
  EXPECT_EQ(Json::load(path("larger/best/config.json")).get_int("image_size"), 20);
  EXPECT_NE(tuned.err.find("12 x 12 pixels, and becomes a model for 20 x 20"), tuned.err.npos)
      << tuned.err;
  EXPECT_NE(tuned.err.find("positions are interpolated"), tuned.err.npos) << tuned.err;
  const auto weights = SafetensorsFile::open(path("larger/best/model.safetensors"));
  const std::vector<int64_t> rows = {1, 1 + 5 * 5, 16};  // a class token and patches of 4 x 4
  EXPECT_EQ(weights.info("vit.embeddings.position_embeddings").shape, rows);
  expect_refused(run_heddle({"train", "--from", path("small"), "--data", path("data"), "--out",
                             path("none"), "--image-size", "16", "--max-updates", "1"}),
                 2, "--image-size is 16");
}

TEST_F(Images, run_goes_on_with_its_own_data_alone) {
  ASSERT_EQ(train("kept", {"--max-updates", "5"}).exit_code, 0);
  const std::string settings = read_file(path("kept/train.json"));
  fs::create_directory(path("two"));
  for (const std::string part : {"train", "test"}) {  // two classes: other weights too
    write_file(path("two/") + part + "-images-idx3-ubyte",
               idx_file({8, 12, 12}, std::string(8 * 144, '\x55')));
    write_file(path("two/") + part + "-labels-idx1-ubyte",
               idx_file({8}, std::string("\0\1\0\1\0\1\0\1", 8)));
  }
  expect_refused(train("kept", {"--data", path("two"), "--max-updates", "9"}), 3,
                 "the training data are not what this run began with");
  EXPECT_EQ(read_file(path("kept/train.json")), settings);
  EXPECT_EQ(train("kept", {"--max-updates", "9"}).exit_code, 0);
  EXPECT_NE(read_file(path("kept/train.json")), settings);
}

// One label that is far off makes all those between.
TEST_F(Images, labels_of_no_image_are_said_in_one_line) {
  fs::create_directory(path("far"));
  for (const std::string part : {"train", "test"}) {
    write_file(path("far/") + part + "-images-idx3-ubyte",
               idx_file({8, 12, 12}, std::string(8 * 144, '\x55')));
    write_file(path("far/") + part + "-labels-idx1-ubyte",
               idx_file({8}, std::string("\0\1\0\1\0\1\0\xFA", 8)));
  }
  const CliResult result = train("far-run", {"--data", path("far"), "--max-updates", "1"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.err.find("no image to train on has the label '2', '3', '4', '5', '6' and 243 "
                            "more"),
            result.err.npos)
      << result.err;
  EXPECT_EQ(result.err.find("no image to train on"), result.err.rfind("no image to train on"));
}

TEST_F(Images, settings_that_images_do_not_fit_are_refused_and_leave_no_run) {
  const auto refused = [](const std::vector<std::string>& flags, int code,
                          const std::string& words) {
    const CliResult result = train("none", with(flags, {"--max-updates", "2"}));
    expect_refused(result, code, words);
    EXPECT_EQ(result.err.find("decoded in"), result.err.npos) << result.err;
    EXPECT_FALSE(fs::exists(path("none")));
  };
  refused({"--image-width", "48"}, 2, "leave --image-width, and give --image-edge");
  refused({"--image-size", "64"}, 2, "give --image-edge 64");
  refused({"--image-size", "64", "--image-edge", "16"}, 2, "trained at 16 x 16 pixels");
  refused({"--num-channels", "1"}, 2, "give --num-channels 3");
  refused({"--patch-size", "5"}, 2, "do not fill images of 12 x 12");
  refused({"--hidden-size", "15"}, 3, "hidden_size");
  EXPECT_EQ(train("sized", {"--image-size", "12", "--max-updates", "2"}).exit_code, 0);
  const CliResult begun =
      run_heddle({"train", "--from", path("sized"), "--data", path("data"), "--image-edge", "13",
                  "--max-updates", "2", "--out", path("none")});
  expect_refused(begun, 2, "do not fill images of 13 x 13");
  EXPECT_EQ(begun.err.find("decoded in"), begun.err.npos) << begun.err;
  // Before any image is read.
  write_file(path("junk"), "no images");
  const std::vector<std::string> junk = {"--data", path("junk"), "--image-edge", "14"};
  refused(junk, 2, "do not fill images of 14 x 14");
  refused(with(junk, {"--patch-size", "7", "--hidden-size", "15"}), 3, "hidden_size");
}

TEST_F(Images, mixer_of_another_size_is_refused_and_leaves_no_run) {
  const std::vector<std::string> words = {"train", "--data",      path("data"), "--max-updates",
                                          "2",     "--precision", "f32"};
  const auto run = [&](const std::vector<std::string>& more) {
    return run_heddle(with(words, more));
  };
  const CliResult begun =
      run({"--task", "image_classification", "--model-type", "mlp_mixer", "--hidden-size", "8",
           "--num-hidden-layers", "1", "--patch-size", "4", "--out", path("mixer")});
  ASSERT_EQ(begun.exit_code, 0) << begun.err;
  expect_refused(run({"--from", path("mixer"), "--image-edge", "16", "--out", path("none")}), 3,
                 "takes no other size");
  EXPECT_FALSE(fs::exists(path("none")));
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
  expect_refused(run_heddle({"eval", path("model")}), 2, "give labelled images as --data DIR");
  EXPECT_EQ(run_heddle({"classify", path("model"), image, "--text", "words"}).exit_code, 2);
  EXPECT_EQ(run_heddle({"classify", path("model"), path("gone.png")}).exit_code, 3);
  fs::create_directory(path("empty"));
  expect_refused(run_heddle({"train", "--task", "image_classification", "--data", path("empty"),
                             "--out", path("none")}),
                 3, "empty");
  EXPECT_FALSE(fs::exists(path("none")));
  const CliResult words = run_heddle({"eval", path("model"), "--data", path("text.jpg")});
  EXPECT_EQ(words.exit_code, 3) << words.err;
}

}  // namespace
}  // namespace heddle::testing
