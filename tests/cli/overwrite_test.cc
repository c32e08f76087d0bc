// heddle train --overwrite: the old run stands until the new one has a model; what else a run
// keeps.
#include <gtest/gtest.h>

#include "heddle/io/snapshot.h"
#include "tests/cli/train_runs.h"

namespace heddle::testing {
namespace {

namespace fs = std::filesystem;

train::TrainConfig updates(int64_t count) {
  train::TrainConfig config = small_config();
  config.max_updates = count;
  return config;
}

class Overwrite : public ::testing::Test {
 protected:
  Overwrite() {
    write_pairs(folder_ / "data");
    EXPECT_EQ(train(updates(5)).exit_code, 0);
    before_ = bytes_below(run_);
  }
  CliResult train(const train::TrainConfig& config, const std::vector<std::string>& more = {}) {
    return run_train(folder_, "run", config, more);
  }
  void expect_refused_and_untouched(const CliResult& result, int exit_code,
                                    const std::vector<std::string>& words) {
    EXPECT_EQ(result.exit_code, exit_code) << result.err;
    for (const std::string& word : words) EXPECT_TRUE(contains(result.err, word)) << result.err;
    EXPECT_TRUE(before_ == bytes_below(run_));
  }
  // Begins a run of 300 updates over the old one, and stops it long before its validation.
  CliResult stop_new_run() {
    return stop_at_log(folder_, "run", long_run(), SIGINT, {"--overwrite"});
  }
  static train::TrainConfig long_run() {
    train::TrainConfig config = updates(300);
    config.seed = 77;
    config.log_every = 1;
    config.checkpoint_every = config.validate_every = 300;
    return config;
  }
  // All of the old run but its lock, which stays in RUN.
  void expect_old_run_in(const fs::path& folder) {
    Bytes old = before_, kept = bytes_below(folder);
    old.erase("state/lock");
    kept.erase("state/lock");
    EXPECT_TRUE(old == kept);
  }
  TempDir folder_;
  fs::path run_ = folder_ / "run";
  Bytes before_;
};

TEST_F(Overwrite,
       run_stopped_before_it_has_a_model_keeps_the_old_one_and_goes_on_to_the_same_bits) {
  ASSERT_EQ(run_train(folder_, "fresh", long_run()).exit_code, 0);
  const CliResult stopped = stop_new_run();
  ASSERT_EQ(stopped.exit_code, 130) << stopped.err;
  const std::string replaced = (run_ / "replaced").string();
  EXPECT_TRUE(contains(stopped.err, "the same command without --overwrite goes on from here"));
  EXPECT_TRUE(contains(stopped.err, replaced + " keeps the earlier run")) << stopped.err;
  expect_old_run_in(replaced);
  const CliResult use = run_heddle({"info", run_.string()});
  EXPECT_EQ(use.exit_code, 3);
  for (const std::string& word : {std::string("not been validated"), replaced}) {
    EXPECT_TRUE(contains(use.err, word)) << use.err;
  }
  EXPECT_EQ(run_heddle({"info", replaced}).exit_code, 0);
  const CliResult end = train(long_run());
  EXPECT_EQ(end.exit_code, 0) << end.err;
  EXPECT_TRUE(contains(end.err, "resuming")) << end.err;
  EXPECT_FALSE(fs::exists(replaced));
  EXPECT_TRUE(model_bytes(folder_ / "fresh") == model_bytes(run_));
  EXPECT_EQ(log_without_times(folder_ / "fresh"), log_without_times(run_));
}

TEST_F(Overwrite, kept_run_outlives_another_overwrite_and_may_be_moved_elsewhere) {
  ASSERT_EQ(stop_new_run().exit_code, 130);
  ASSERT_EQ(stop_new_run().exit_code, 130);
  expect_old_run_in(run_ / "replaced");
  train::TrainConfig config = updates(5);
  config.stack.set("vocab_size", 5000);  // more than the text gives
  const CliResult failed = train(config, {"--overwrite"});
  EXPECT_TRUE(contains(failed.err, "stands there again")) << failed.err;
  expect_old_run_in(run_);
  ASSERT_EQ(stop_new_run().exit_code, 130);
  fs::rename(run_ / "replaced", folder_ / "other");
  expect_old_run_in(folder_ / "other");
  EXPECT_TRUE(contains(run_heddle({"train", "--out", (folder_ / "other").string()}).err,
                       "is finished: 5 updates"));
  EXPECT_EQ(run_heddle({"train", "--out", run_.string()}).exit_code, 0);
}

// Killed between any two names that it moves.
TEST_F(Overwrite, run_that_was_half_set_aside_is_put_back) {
  const std::vector<std::string> names = {"state/manifest.json", "last", "best", "log.jsonl"};
  fs::create_directories(run_ / "replaced" / "state");
  for (const std::string& name : names) {
    fs::rename(run_ / name, run_ / "replaced" / name);
    const CliResult result = run_heddle({"train", "--out", run_.string()});
    EXPECT_TRUE(contains(result.err, "stands there again")) << name << result.err;
    expect_old_run_in(run_);
    fs::create_directories(run_ / "replaced" / "state");
  }
}

// A folder of that name that somebody else made.
TEST_F(Overwrite, folder_called_replaced_that_holds_no_run_is_let_alone) {
  fs::create_directories(run_ / "replaced");
  write_file(run_ / "replaced" / "log.jsonl", "of somebody else\n");
  const std::string log = read_file(run_ / "log.jsonl");
  EXPECT_TRUE(
      contains(run_heddle({"train", "--out", run_.string()}).err, "is finished: 5 updates"));
  EXPECT_EQ(read_file(run_ / "log.jsonl"), log);
  EXPECT_EQ(read_file(run_ / "replaced" / "log.jsonl"), "of somebody else\n");
  EXPECT_TRUE(contains(train(updates(6), {"--overwrite"}).err, "is in the way"));
}

TEST_F(Overwrite, start_that_fails_leaves_the_old_run_as_it_was) {
  train::TrainConfig config = updates(5);
  config.stack.set("vocab_size", 5000);  // more than the text gives
  expect_refused_and_untouched(train(config, {"--overwrite"}), 3, {"5000", "stands there again"});
  write_file(folder_ / "data" / "train.en", "one line\n");
  expect_refused_and_untouched(train(updates(6), {"--overwrite"}), 3, {"train.en"});
  fs::remove_all(folder_ / "data");
  expect_refused_and_untouched(train(updates(6), {"--overwrite"}), 3, {"data"});
}

TEST_F(Overwrite, run_that_fails_before_its_first_save_leaves_the_old_one_as_it_was) {
  train::TrainConfig config = updates(5);
  config.learning_rate = 1e30;
  config.warmup_updates = 0;
  expect_refused_and_untouched(train(config, {"--overwrite"}), 3,
                               {"not finite", "stands there again"});
}

TEST_F(Overwrite, inputs_inside_the_run_are_refused) {
  const std::string model = (run_ / "tokenizer.model").string();
  expect_refused_and_untouched(train(updates(5), {"--tokenizer", model, "--overwrite"}), 2,
                               {"--tokenizer", model, "--overwrite"});
  fs::create_symlink(run_ / "best", folder_ / "link");
  const std::vector<std::string> begin = {"train",         "--out", run_.string(), "--overwrite",
                                          "--max-updates", "5",     "--task",      "causal_lm"};
  const auto refused = [&](const char* flag, const fs::path& path) {
    std::vector<std::string> words = begin;
    if (flag != std::string("--data")) {
      words.insert(words.end(), {"--data", (folder_ / "data" / "train.en").string()});
    }
    words.insert(words.end(), {flag, path.string()});
    expect_refused_and_untouched(run_heddle(words), 2, {flag, path.string()});
  };
  refused("--data", run_ / "log.jsonl");
  refused("--val-data", run_ / "log.jsonl");
  refused("--tokenizer", folder_ / "link");
}

TEST_F(Overwrite, new_run_takes_the_place_once_it_has_a_model) {
  write_file(run_ / "notes.txt", "mine");
  train::TrainConfig config = updates(9);
  config.seed = 77;
  ASSERT_EQ(run_train(folder_, "fresh", config).exit_code, 0);
  const CliResult result = train(config, {"--overwrite"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_TRUE(model_bytes(folder_ / "fresh") == model_bytes(run_));
  EXPECT_FALSE(fs::exists(run_ / "replaced"));
  EXPECT_EQ(read_file(run_ / "notes.txt"), "mine");
  EXPECT_FALSE(fs::exists(run_ / "state" / "snapshot-000000005.safetensors"));
}

// Killed while it trains, with nothing saved yet.
TEST_F(Overwrite, killed_start_leaves_the_old_run_findable_and_the_next_puts_it_back) {
  train::TrainConfig config = updates(100000);
  config.checkpoint_every = config.validate_every = 100000;
  config.log_every = 1;
  const std::string log = (run_ / "log.jsonl").string();
  const std::string complete = (run_ / "replaced" / "train.json").string();
  EXPECT_EQ(stop_when("[ -f '" + complete + "' ] && [ -s '" + log + "' ]", folder_, "run", config,
                      "KILL", {"--overwrite"})
                .exit_code,
            137);
  const CliResult use = run_heddle({"info", run_.string()});
  EXPECT_EQ(use.exit_code, 3);
  EXPECT_TRUE(contains(use.err, (run_ / "replaced").string())) << use.err;
  EXPECT_TRUE(contains(use.err, "heddle train --out " + run_.string())) << use.err;
  EXPECT_EQ(run_heddle({"info", (run_ / "replaced").string()}).exit_code, 0);
  const CliResult next = run_heddle({"train", "--out", run_.string()});
  EXPECT_EQ(next.exit_code, 0) << next.err;
  EXPECT_TRUE(contains(next.err, "stands there again")) << next.err;
  EXPECT_TRUE(contains(next.err, "is finished: 5 updates")) << next.err;
  EXPECT_TRUE(before_ == bytes_below(run_));
}

TEST_F(Overwrite, folder_of_that_name_that_is_not_ours_is_left_alone) {
  write_file(run_ / "replaced" / "notes.txt", "mine");
  before_ = bytes_below(run_);
  expect_refused_and_untouched(train(updates(6), {"--overwrite"}), 2, {"replaced", "in the way"});
  EXPECT_EQ(train(updates(5)).exit_code, 0);
  EXPECT_EQ(read_file(run_ / "replaced" / "notes.txt"), "mine");
}

TEST_F(Overwrite, state_of_another_version_is_resumed_with_a_warning) {
  EXPECT_FALSE(contains(train(updates(6)).err, "this is heddle"));
  const std::string state = (run_ / "state").string();
  const auto manifest = load_manifest(state);
  ASSERT_TRUE(manifest.has_value());
  std::vector<std::string> names;
  for (const ManifestFile& file : manifest->files) names.push_back(file.name);
  Json content = manifest->content;
  content["heddle"] = "0.0.7";
  commit_manifest(state, content, names, &*manifest);
  const CliResult result = train(updates(7));
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_TRUE(contains(result.err, "saved by heddle 0.0.7, this is heddle ")) << result.err;
  EXPECT_FALSE(contains(train(updates(8)).err, "this is heddle"));
}

TEST_F(Overwrite, log_that_a_cut_shortened_is_compared_up_to_its_last_whole_line) {
  const std::string log = read_file(run_ / "log.jsonl");
  write_file(run_ / "log.jsonl", log + log.substr(0, 30));
  const CliResult compared = run_heddle({"compare", run_.string(), run_.string()});
  EXPECT_EQ(compared.exit_code, 0) << compared.err;
  write_file(run_ / "log.jsonl", log.substr(0, log.size() - 9));
  EXPECT_EQ(train(updates(7)).exit_code, 0);
  EXPECT_EQ(run_heddle({"compare", run_.string(), run_.string()}).exit_code, 0);
}

}  // namespace
}  // namespace heddle::testing
