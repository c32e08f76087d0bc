// Training by heddle launch: a rank that is killed costs nothing but time.
#include <gtest/gtest.h>

#include "tests/dist/rank_runs.h"

namespace heddle::testing {
namespace {

// Starts `words` in the background, kills rank 1 once a state of the run is saved, waits for the
// end.
CliResult kill_rank_1(const std::vector<std::string>& words, const std::filesystem::path& run) {
  std::string command = kProgram;
  for (const std::string& word : words) command += " '" + word + "'";
  command +=
      " & p=$!; until [ -e '" + (run / "state" / "manifest.json").string() +
      "' ] || ! kill -0 $p; do sleep 0.01; done; for q in $(cat /proc/$p/task/$p/children); do"
      " grep -qz '^HEDDLE_RANK=1$' /proc/$q/environ && kill -9 $q; done; wait $p";
  return run_command({"sh", "-c", command});
}

TEST(LaunchedTraining, goes_on_after_a_rank_was_killed_to_the_bits_of_one_process) {
  const TempDir folder;
  write_pairs(folder / "data");
  train::TrainConfig c = small_config();
  c.shards = 2;
  c.max_updates = 400;
  c.validate_every = 200;
  c.checkpoint_every = 5;
  const std::vector<std::string> data = {"--data", (folder / "data").string()};
  train_by_ranks(1, folder, "whole", c, data);

  const std::filesystem::path run = folder / "killed";
  const std::string config = (folder / "killed.json").string();
  write_file(config, to_json(c).dump());
  const std::vector<std::string> words = {
      "launch", "-n",     "2",     "--restarts", "1",          "train",     "--config",
      config,   "--data", data[1], "--out",      run.string(), "--threads", "1"};
  const CliResult result = kill_rank_1(words, run);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_TRUE(contains(result.err, "rank 1 was ended by signal 9")) << result.err;
  EXPECT_TRUE(contains(result.err, "starting all ranks again (1 of 1)")) << result.err;
  EXPECT_TRUE(contains(result.err, "has ended without a word")) << result.err;
  EXPECT_FALSE(snapshot_bytes(run).empty());
  EXPECT_TRUE(snapshot_bytes(run) == snapshot_bytes(folder / "whole"));
  EXPECT_TRUE(bytes_below(run / "last") == bytes_below(folder / "whole" / "last"));
}

}  // namespace
}  // namespace heddle::testing
