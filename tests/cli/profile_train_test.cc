// --profile on training: both passes and every phase are named, and no bit changes.
#include "tests/cli/traces.h"
#include "tests/cli/train_runs.h"

namespace heddle::testing {
namespace {

TEST(ProfileTrain, models_have_the_same_bits_and_both_passes_are_named) {
  const TempDir folder;
  write_pairs(folder / "data");
  train::TrainConfig config = small_config();
  config.max_updates = 12;
  config.validate_every = 6;
  const std::string path = (folder / "t.json").string();
  const CliResult plain = run_train(folder, "plain", config);
  const CliResult result = run_train(folder, "profiled", config, {"--profile", path});
  ASSERT_EQ(plain.exit_code, 0) << plain.err;
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_TRUE(model_bytes(folder / "plain") == model_bytes(folder / "profiled"));
  EXPECT_EQ(log_without_times(folder / "plain"), log_without_times(folder / "profiled"));
  for (const char* part :
       {"\nlinear  ", "\nlinear backward  ", "\nself_attention  ", "\nself_attention backward  ",
        "\nadam  ", "\nupdate  ", "\nvalidation  ", "\ncheckpoint  ", "\ntokenise  ",
        "\nlayer  "}) {  // which layers are in the table, by time, hangs on the machine's load
    EXPECT_TRUE(contains(result.err, part)) << part << " in\n" << result.err;
  }
  const auto seen = read_trace(path);
  for (const char* event : {"linear forward model.encoder.layers.0.fc1",
                            "linear backward backward model.encoder.layers.0.fc1",
                            "adam kernel (optimizer)", "validation phase "}) {
    EXPECT_TRUE(seen.contains(event)) << event;
  }
}

TEST(ProfileTrain, stopped_run_saves_and_gives_the_profile) {
  const TempDir folder;
  write_pairs(folder / "data");
  train::TrainConfig config = small_config();
  config.max_updates = 100000;
  const std::string path = (folder / "t.json").string();
  const CliResult result = stop_at_log(folder, "run", config, SIGTERM, {"--profile", path});
  EXPECT_EQ(result.exit_code, 143) << result.err;
  EXPECT_TRUE(contains(result.err, "stopped at update")) << result.err;
  EXPECT_TRUE(contains(result.err, "\nprofile: ")) << result.err;
  EXPECT_TRUE(read_trace(path).contains("update phase "));
}

}  // namespace
}  // namespace heddle::testing
