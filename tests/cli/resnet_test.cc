// ResNet at the command line: training with batch norm by SGD to the same bits however it runs,
// what is frozen, and two views of an image.
#include <filesystem>

#include "heddle/base/json/json.h"
#include "heddle/base/rng.h"
#include "heddle/io/safetensors.h"
#include "tests/cli/run_folder.h"
#include "tests/data/image_files.h"

namespace heddle::testing {
namespace {

namespace fs = std::filesystem;

// IDX files of grey images of 8 x 8 pixels whose class is the half that is bright.
void write_halves(const std::string& folder, const std::string& part, uint32_t count) {
  std::string pixels, labels;
  RngStream random(make_key(9, count, 0));
  for (uint32_t i = 0; i < count; ++i) {
    labels += static_cast<char>(i % 2);
    for (uint32_t p = 0; p < 64; ++p) {
      pixels += static_cast<char>(((p / 32 == i % 2) ? 90 : 0) + random.below(120));
    }
  }
  write_file(folder + "/" + part + "-images-idx3-ubyte", idx_file({count, 8, 8}, pixels));
  write_file(folder + "/" + part + "-labels-idx1-ubyte", idx_file({count}, labels));
}

class Resnet : public RunFolder {
 protected:
  static void SetUpTestSuite() {
    RunFolder::SetUpTestSuite();
    fs::create_directory(path("data"));
    write_halves(path("data"), "train", 200);
    write_halves(path("data"), "test", 60);
  }
  static CliResult train(const std::string& run, const std::vector<std::string>& more) {
    const std::vector<std::string> words = words_of(
        "train --task image_classification --model-type resnet --stem cifar --downsample pool "
        "--layer-type basic --embedding-size 8 --hidden-sizes 8,16 --depths 1,1 --optimizer sgd "
        "--learning-rate 0.1 --weight-decay 0.0005 --ema-decay 0.9 --batch-size 32 "
        "--schedule constant --warmup-updates 5 --validate-every 20 --checkpoint-every 5 "
        "--precision f32");
    return run_heddle(with(with(words, {"--data", path("data"), "--out", path(run)}), more));
  }
  static std::vector<float> tensor(const std::string& run, const std::string& name) {
    return SafetensorsFile::open(path(run) + "/last/model.safetensors").info(name).floats();
  }
};

constexpr const char* kStem = "resnet.embedder.embedder.normalization.";

TEST_F(Resnet, learns_and_is_right_by_one_view_and_by_two) {
  const CliResult trained = train("learned", {"--max-updates", "60"});
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  EXPECT_EQ(trained.err.find("warning"), trained.err.npos) << trained.err;
  EXPECT_EQ(tensor("learned", std::string(kStem) + "num_batches_tracked"), std::vector<float>{60});
  for (const char* views : {"1", "2"}) {
    const CliResult judged =
        run_heddle({"eval", path("learned"), "--data", path("data"), "--views", views, "--json"});
    ASSERT_EQ(judged.exit_code, 0) << judged.err;
    EXPECT_GT(Json::parse(judged.out).at("accuracy").as_double(), 0.95) << views;
  }
  expect_refused(run_heddle({"eval", path("learned"), "--data", path("data"), "--views", "3"}), 2,
                 "--views is 3");
}

TEST_F(Resnet, threads_stops_and_recomputation_change_no_bit_of_weights_or_statistics) {
  expect_same_for_threads_and_stops(train, "whole", 40, 15);
  EXPECT_EQ(weights("whole-stopped", "best"), weights("whole", "best"));
  ASSERT_EQ(train("again", {"--max-updates", "40", "--recompute", "true"}).exit_code, 0);
  EXPECT_EQ(weights("again"), weights("whole"));
}

TEST_F(Resnet, statistics_that_are_frozen_stay_and_others_move_through_stops) {
  const std::vector<std::string> part = {"--from", path("begun"), "--freeze", "embedder"};
  ASSERT_EQ(train("begun", {"--max-updates", "20"}).exit_code, 0);
  const CliResult tuned = train("tuned", with(part, {"--max-updates", "20"}));
  ASSERT_EQ(tuned.exit_code, 0) << tuned.err;
  for (const char* name : {"running_mean", "running_var", "num_batches_tracked", "weight"}) {
    EXPECT_EQ(tensor("tuned", std::string(kStem) + name),
              tensor("begun", std::string(kStem) + name));
  }
  const std::string moved = "resnet.encoder.stages.1.transition.normalization.running_mean";
  EXPECT_NE(tensor("tuned", moved), tensor("begun", moved));
  ASSERT_EQ(train("halted", with(part, {"--max-updates", "10"})).exit_code, 0);
  ASSERT_EQ(train("halted", with(part, {"--max-updates", "20"})).exit_code, 0);
  EXPECT_EQ(weights("halted"), weights("tuned"));
}

// Attention behind the last stage, and in place of the convolutions of layers.
TEST_F(Resnet, attention_among_pixels_learns_with_the_same_bits_for_threads_and_recomputation) {
  for (const std::vector<std::string>& kind :
       {std::vector<std::string>{"--attention-stages", "1"},
        std::vector<std::string>{"--layer-type", "attention", "--attention-window", "2"}}) {
    const std::vector<std::string> words =
        with(kind, {"--attention-head-width", "4", "--max-updates", "60"});
    const std::string run = kind[0];
    const CliResult trained = train(run, with(words, {"--threads", "1"}));
    ASSERT_EQ(trained.exit_code, 0) << trained.err;
    const CliResult judged =
        run_heddle({"eval", path(run), "--data", path("data"), "--json", "--precision", "f32"});
    EXPECT_GT(Json::parse(judged.out).at("accuracy").as_double(), 0.9) << run;
    ASSERT_EQ(train(run + "3", with(words, {"--threads", "3", "--recompute", "true"})).exit_code,
              0);
    EXPECT_EQ(weights(run + "3"), weights(run)) << run;
  }
}

TEST_F(Resnet, fields_that_do_not_fit_together_are_named) {
  expect_refused(
      run_heddle({"train", "--task", "image_classification", "--model-type", "resnet", "--data",
                  path("data"), "--out", path("bad"), "--depths", "1,1,1", "--max-updates", "5"}),
      3, "4 hidden_sizes and 3 depths");
  expect_refused(train("bad", {"--max-updates", "5", "--norm", "group", "--norm-groups", "3"}), 3,
                 "norm_groups 3 does not divide");
  EXPECT_FALSE(fs::exists(path("bad")));
  ASSERT_EQ(train("grouped", {"--max-updates", "5", "--norm", "group"}).exit_code, 0);
}

}  // namespace
}  // namespace heddle::testing
