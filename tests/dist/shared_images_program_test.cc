// Commands on images by several processes: the bytes of one; a rank that hangs in its share.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "tests/dist/rank_runs.h"

namespace heddle::testing {
namespace {

using Words = std::vector<std::string>;

Words with(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

// Makes data and a model that has hardly learned anything of them. returns: the model
std::string train_on_shapes(const TempDir& folder, const std::string& task, const Words& settings) {
  const std::string data = (folder / "data").string(), run = (folder / "run").string();
  const std::string drawn = task.substr(task.find('_') + 1);  // npos + 1: all of it
  const CliResult made = run_heddle({"shapes", "--task", drawn, "--out", data, "--count", "24",
                                     "--held-out", "150", "--size", "32"});
  EXPECT_EQ(made.exit_code, 0) << made.err;
  const CliResult trained =
      run_heddle(with({"train", "--task", task, "--data", data, "--out", run, "--max-updates", "2",
                       "--batch-size", "8", "--threads", "1"},
                      settings));
  EXPECT_EQ(trained.exit_code, 0) << trained.err;
  return run;
}

// Of all images below a folder, in order.
Words images_below(const std::filesystem::path& folder) {
  Words images;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    const std::string extension = entry.path().extension().string();
    if (extension == ".png" || extension == ".jpg") images.push_back(entry.path().string());
  }
  std::ranges::sort(images);
  return images;
}

Words vit() {
  return {"--model-type",          "vit", "--hidden-size",       "16", "--num-hidden-layers", "1",
          "--num-attention-heads", "2",   "--intermediate-size", "16", "--patch-size",        "8"};
}

constexpr const char* kBackbone =
    R"({"model_type": "resnet", "norm": "group", "norm_groups": 2, "layer_type": "basic",)"
    R"( "embedding_size": 4, "hidden_sizes": [8, 8], "depths": [1, 1]})";

TEST(SharedImages, classes_and_vectors_are_the_lines_of_one_process) {
  const TempDir folder;
  const std::string model = train_on_shapes(folder, "image_classification", vit());
  Words images = images_below(folder / "data" / "val");
  ASSERT_GE(images.size(), 140U);
  write_file(images[3], "no image");
  expect_as_one(folder, {"eval", model, "--data", (folder / "data").string(), "--json"});
  expect_as_one(folder, with({"classify", model}, images), "", 3);
  expect_as_one(folder, with({"classify", model, "--skip-bad"}, images));
  expect_as_one(folder, with({"embed", model, "--skip-bad", "--json"}, images));
}

TEST(SharedImages, boxes_are_the_lines_of_one_process) {
  const TempDir folder;
  const std::string model = train_on_shapes(
      folder, "object_detection",
      {"--num-queries", "8", "--d-model", "16", "--encoder-layers", "1", "--decoder-layers", "1",
       "--encoder-attention-heads", "2", "--decoder-attention-heads", "2", "--encoder-ffn-dim",
       "16", "--decoder-ffn-dim", "16", "--backbone-config", kBackbone});
  const Words images = images_below(folder / "data");
  ASSERT_GE(images.size(), 140U);
  expect_as_one(folder, with({"detect", model, "--threshold", "0.05"}, images));
}

TEST(SharedImages, captions_and_draws_are_the_lines_of_one_process) {
  const TempDir folder;
  const std::string model = train_on_shapes(
      folder, "captioning",
      {"--memory-size", "8", "--hidden-size", "16", "--embedding-size", "8", "--backbone-config",
       R"({"model_type": "resnet", "stem": "cifar", "downsample": "pool", "layer_type": "plain",)"
       R"( "norm": "group", "norm_groups": 2, "embedding_size": 4, "hidden_sizes": [8, 8],)"
       R"( "depths": [0, 0]})"});
  Words images = images_below(folder / "data");
  ASSERT_GE(images.size(), 140U);
  write_file(images[50], "no image");
  expect_as_one(folder, with({"caption", model, "--skip-bad", "--max-length", "6"}, images));
  expect_as_one(folder, with({"caption", model, "--skip-bad", "--sample", "--n-best", "2", "--json",
                              "--max-length", "6"},
                             images));
}

// What it reads is a pipe that nobody writes to.
TEST(SharedImages, a_rank_that_hangs_in_its_share_is_named_and_all_end) {
  const TempDir folder;
  const std::string model = train_on_shapes(folder, "image_classification", vit());
  const std::string image = images_below(folder / "data" / "val").at(0);
  Words words = {"classify", model, "--step-seconds", "15"};
  std::vector<CliOptions> options(2);
  for (size_t rank = 0; rank < 2; ++rank) {
    options[rank].timeout_seconds = 300;
    options[rank].folder = folder / fmt::format("of-rank-{}", rank);
    std::filesystem::create_directory(options[rank].folder);
  }
  for (int i = 0; i < 64; ++i) {
    const std::string name = fmt::format("{:02d}.png", i);
    words.push_back(name);
    for (const CliOptions& own : options) std::filesystem::copy(image, own.folder / name);
  }
  const std::string pipe = (options[1].folder / "40.png").string();
  std::filesystem::remove(pipe);
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  for (const CliResult& result : run_each({words, words}, folder, options)) {
    EXPECT_EQ(result.exit_code, 7) << result.err;
    EXPECT_TRUE(contains(result.err, "rank 1 (") && contains(result.err, "has not got on for "))
        << result.err;
    EXPECT_FALSE(result.timed_out);
  }
}

}  // namespace
}  // namespace heddle::testing
