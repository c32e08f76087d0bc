// heddle train at the command line: kills, stops, full disks, bad input, what it prints.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <fstream>

#include "heddle/train/run/state.h"
#include "tests/cli/train_runs.h"

namespace heddle::testing {
namespace {

namespace fs = std::filesystem;

// The exit code and words of the message; nothing on stdout, one line that begins with the program.
void expect_refused(const CliResult& result, int exit_code, const std::vector<std::string>& words) {
  EXPECT_EQ(result.exit_code, exit_code) << result.err;
  EXPECT_EQ(result.out, "");
  EXPECT_TRUE(contains(result.err, "heddle: ")) << result.err;
  for (const std::string& word : words) {
    EXPECT_TRUE(contains(result.err, word)) << "'" << word << "' is not in: " << result.err;
  }
}

class TrainCommand : public ::testing::Test {
 protected:
  TrainCommand() { write_pairs(folder_ / "data"); }
  CliResult train(const std::string& run, const train::TrainConfig& config,
                  const std::vector<std::string>& more = {}, const CliOptions& options = {}) {
    return run_train(folder_, run, config, more, options);
  }
  // Starts the run, sends a signal once it has written to its log, and waits for the end.
  CliResult stop(const std::string& run, const train::TrainConfig& config, int signal) {
    return stop_at_log(folder_, run, config, signal);
  }
  TempDir folder_;
};

train::TrainConfig five_updates() {
  train::TrainConfig config = small_config();
  config.max_updates = 5;
  return config;
}

TEST_F(TrainCommand, killed_runs_end_in_the_same_bits) {
  expect_killed_run_equals_whole(often_saving("last", "auto"), 4, 7);
}

TEST_F(TrainCommand, stop_by_a_signal_saves_and_goes_on_to_the_same_bits) {
  train::TrainConfig config = often_saving("last", "f32");
  config.max_updates = 240;
  config.checkpoint_every = 100000;  // so that it is the signal that saves
  config.log_every = config.validate_every = 5;
  ASSERT_EQ(train("whole", config).exit_code, 0);
  const CliResult interrupted = stop("run", config, SIGINT);
  EXPECT_EQ(interrupted.exit_code, 130) << interrupted.err;
  EXPECT_TRUE(contains(interrupted.err, "the same command goes on")) << interrupted.err;
  EXPECT_TRUE(fs::exists(folder_ / "run" / "state" / "manifest.json"));
  const CliResult terminated = stop("run", config, SIGTERM);
  EXPECT_EQ(terminated.exit_code, 143) << terminated.err;
  EXPECT_TRUE(contains(terminated.err, "resuming")) << terminated.err;
  const CliResult hung_up = stop("run", config, SIGHUP);
  EXPECT_EQ(hung_up.exit_code, 129) << hung_up.err;
  EXPECT_TRUE(contains(hung_up.err, "the same command goes on")) << hung_up.err;
  const CliResult end = train("run", config);
  EXPECT_EQ(end.exit_code, 0) << end.err;
  EXPECT_TRUE(model_bytes(folder_ / "whole") == model_bytes(folder_ / "run"));
  EXPECT_EQ(log_without_times(folder_ / "whole"), log_without_times(folder_ / "run"));
}

// It would begin again at update 0, and replace a model that was trained for longer.
TEST_F(TrainCommand, run_whose_state_is_gone_is_not_begun_again_unasked) {
  train::TrainConfig config = five_updates();
  config.validate_every = 2;
  ASSERT_EQ(train("run", config).exit_code, 0);
  const auto model = model_bytes(folder_ / "run");
  for (const std::string lost : {"state/manifest.json", "state"}) {
    fs::remove_all(folder_ / "run" / lost);
    config.max_updates = lost == "state" ? 2 : 8;
    expect_refused(train("run", config), 2, {lost + " is missing", "update 5", "--overwrite"});
    EXPECT_TRUE(model_bytes(folder_ / "run") == model);
    EXPECT_FALSE(fs::exists(folder_ / "run" / lost));
  }
  EXPECT_EQ(train("run", config, {"--overwrite"}).exit_code, 0);
}

// Products of such sizes are beyond the integers.
TEST_F(TrainCommand, sizes_that_no_memory_holds_are_refused) {
  const std::string run = (folder_ / "run").string(), text = (folder_ / "data/train.en").string();
  struct Sizes {
    std::string task, type;
    std::vector<std::string> flags;
  };
  for (const auto& [task, type, flags] : std::vector<Sizes>{
           {"causal_lm",
            "gpt2",
            {"--n-embd", "--n-inner", "--n-positions", "--n-layer", "--n-head", "--accumulate"}},
           {"causal_lm", "llama", {"--hidden-size", "--intermediate-size", "--num-hidden-layers"}},
           {"causal_lm", "mixtral", {"--num-local-experts", "--num-experts-per-tok"}},
           {"causal_lm", "transfo-xl", {"--d-model", "--d-inner", "--n-layer"}},
           {"object_detection",
            "detr",
            {"--d-model", "--encoder-layers", "--decoder-layers", "--num-queries", "--drawn-images",
             "--drawn-held-out"}},
           {"image_classification",
            "resnet",
            {"--depths", "--hidden-sizes", "--embedding-size", "--attention-window"}}}) {
    for (const std::string& flag : flags) {
      const CliResult result =
          run_heddle({"train", "--task", task, "--data", text, "--model-type", type, flag,
                      "4611686018427387904", "--max-updates", "1", "--out", run});
      EXPECT_EQ(result.exit_code, 2) << flag << result.err;
      EXPECT_TRUE(contains(result.err, flag)) << result.err;
      EXPECT_FALSE(fs::exists(run));
    }
  }
}

TEST_F(TrainCommand, out_alone_goes_on_with_a_stopped_run) {
  train::TrainConfig config = small_config();
  config.max_updates = 160;
  config.log_every = 5;
  ASSERT_EQ(stop("run", config, SIGINT).exit_code, 130);
  const CliResult end = run_heddle({"train", "--out", (folder_ / "run").string()});
  EXPECT_EQ(end.exit_code, 0) << end.err;
  EXPECT_TRUE(contains(end.err, "160 updates")) << end.err;
  const CliResult again = run_heddle({"train", "--out", (folder_ / "run").string()});
  EXPECT_EQ(again.exit_code, 0);
  EXPECT_TRUE(contains(again.err, "is finished")) << again.err;
}

TEST_F(TrainCommand, finished_run_says_so_and_writes_nothing) {
  ASSERT_EQ(train("run", five_updates()).exit_code, 0);
  const auto before = files_below(folder_ / "run");
  const CliResult again = train("run", five_updates(), {"--threads", "2"});
  EXPECT_EQ(again.exit_code, 0);
  EXPECT_TRUE(contains(again.err, "is finished: 5 updates")) << again.err;
  EXPECT_TRUE(before == files_below(folder_ / "run"));
}

TEST_F(TrainCommand, other_setting_of_a_run_is_a_usage_error_that_names_it) {
  ASSERT_EQ(train("run", five_updates()).exit_code, 0);
  train::TrainConfig config = five_updates();
  set_from_string(config, "dropout", "0.25");
  expect_refused(train("run", config), 2, {"--dropout 0.1", "not 0.25", "--overwrite"});
  EXPECT_EQ(train("run", config, {"--overwrite"}).exit_code, 0);
}

// Killed when it has noted a second of work; half a second is then long past, so that not one
// update is left to do.
TEST_F(TrainCommand, minutes_before_a_kill_count) {
  train::TrainConfig config = small_config();
  config.max_updates = 0;
  config.max_minutes = 60;
  config.checkpoint_every = config.validate_every = config.log_every = 1000000;  // nothing is saved
  const std::string note = (folder_ / "run" / "state" / "seconds").string();
  ASSERT_EQ(stop_when("grep -q '[1-9][0-9]*[.]' '" + note + "' 2>/dev/null", folder_, "run", config,
                      "KILL")
                .exit_code,
            137);
  const double noted = std::stod(read_file(note));
  ASSERT_GE(noted, 1);
  config.max_minutes = 0.5 / 60;
  const CliResult end = train("run", config);
  ASSERT_EQ(end.exit_code, 0) << end.err;
  const auto state = train::StateFolder::peek((folder_ / "run" / "state").string());
  ASSERT_TRUE(state.has_value());
  EXPECT_EQ(state->update, 0);
  EXPECT_GE(state->seconds, noted);
}

TEST_F(TrainCommand, full_disk_while_saving_keeps_the_state_and_the_run_goes_on) {
  train::TrainConfig config = small_config();
  ASSERT_EQ(train("whole", config).exit_code, 0);
  train::TrainConfig part = config;
  part.max_updates = 20;
  ASSERT_EQ(train("run", part).exit_code, 0);
  const std::string before = read_file(folder_ / "run" / "state" / "manifest.json");
  // A file may have 64 blocks of 512 bytes (dash): less than a snapshot. As with a full disk,
  // write() fails half-way.
  std::string words = kProgram;
  for (const std::string& w : train_words(folder_, "run", config)) words += " '" + w + "'";
  const CliResult full = run_command({"sh", "-c", "trap '' XFSZ; ulimit -f 64; exec " + words});
  expect_refused(full, 6, {"snapshot", "cannot write"});
  EXPECT_EQ(read_file(folder_ / "run" / "state" / "manifest.json"), before);
  const CliResult end = train("run", config);
  EXPECT_EQ(end.exit_code, 0) << end.err;
  EXPECT_TRUE(model_bytes(folder_ / "whole") == model_bytes(folder_ / "run"));
}

TEST_F(TrainCommand, loss_that_is_not_finite_ends_with_the_tensor_and_a_good_state) {
  train::TrainConfig config = small_config();
  config.learning_rate = 1e30;
  config.warmup_updates = 0;
  config.checkpoint_every = 1;
  const CliResult result = train("run", config);
  expect_refused(result, 3, {"update 2", "is not finite", "the last good state is in"});
  EXPECT_TRUE(fs::exists(folder_ / "run" / "state" / "manifest.json"));
  expect_refused(train("run", config), 3, {"update 2"});  // it loads, and comes to the same end
}

TEST_F(TrainCommand, second_process_on_a_run_is_refused) {
  train::TrainConfig config = small_config();
  config.max_updates = 100000;
  std::string words;
  for (const std::string& w : train_words(folder_, "run", config)) words += " '" + w + "'";
  const std::string lock = (folder_ / "run" / "log.jsonl").string();
  const std::string program = kProgram;
  const CliResult result = run_command({"sh", "-c",
                                        program + words + " 2>/dev/null & p=$!; until [ -e '" +
                                            lock + "' ]; do sleep 0.01; done; " + program + words +
                                            " --overwrite; s=$?; kill -9 $p; exit $s"});
  expect_refused(result, 2, {"another heddle is working here"});
}

TEST_F(TrainCommand, plain_lines_without_a_terminal_show_no_control_characters) {
  const CliResult result = train("run", five_updates());
  EXPECT_EQ(result.out, "");
  EXPECT_FALSE(contains(result.err, "\r"));
  EXPECT_FALSE(contains(result.err, "\033"));
  EXPECT_TRUE(contains(result.err, "validation loss")) << result.err;
  EXPECT_TRUE(contains(result.err, "run/best")) << result.err;
}

TEST_F(TrainCommand, bad_flags_are_usage_errors_that_leave_nothing) {
  const auto refused = [&](const std::vector<std::string>& more,
                           const std::vector<std::string>& words) {
    expect_refused(train("run", five_updates(), more), 2, words);
    EXPECT_FALSE(fs::exists(folder_ / "run"));
  };
  refused({"--val-data", "x"}, {"val.en", "leave --val-data out"});
  refused({"--corpus", "phrasebook"}, {"corpus phrasebook is drawn"});
  refused({"--recipe", "multi30k-en-du"}, {"'multi30k-en-du'", "multi30k-en-de", "phrasebook"});
  refused({"--preset", "huge"}, {"'huge'", "tiny, base or big"});
  refused({"--learning-rat", "1"}, {"--learning-rat", "Did you mean '--learning-rate'?"});
  refused({"--dropout", "1.5"}, {"--dropout", "1.5"});
  refused({"--dropout", "much"}, {"--dropout", "'much'", "number"});
  refused({"--optimizer", "lion"}, {"--optimizer", "lion", "adamw"});
  refused({"--threads", "-1"}, {"--threads is -1"});
  refused({"--adam-epsilon", "0"}, {"--adam-epsilon is 0"});
  train::TrainConfig config = five_updates();
  config.stack.set("decoder_attention_heads", 3);
  expect_refused(train("run", config), 2, {"d_model 32", "3 heads"});
  expect_refused(run_heddle({"train", "--max-updates", "5"}), 2, {"--out"});
  expect_refused(run_heddle({"train", "--max-updates", "5", "--out", (folder_ / "run").string()}),
                 2, {"--data DIR", "train.en"});
  EXPECT_FALSE(fs::exists(folder_ / "run"));
}

TEST_F(TrainCommand, bad_text_is_a_data_error_that_names_the_place_and_leaves_nothing) {
  const auto refused = [&](const std::vector<std::string>& words) {
    expect_refused(train("run", five_updates()), 3, words);
    EXPECT_FALSE(fs::exists(folder_ / "run"));
  };
  const fs::path en = folder_ / "data" / "train.en", val = folder_ / "data" / "val.de";
  const std::string text = read_file(en), val_text = read_file(val);
  write_file(en, text + "one more line\n");
  refused({"train.en", "201", "train.de", "200"});
  write_file(en, "caf\xe9 au lait\n" + text.substr(text.find('\n') + 1));
  refused({"train.en", "line 1", "UTF-8"});
  write_file(en, text);
  write_file(val, val_text.substr(0, val_text.size() / 2));
  refused({"val."});
  fs::remove(val);
  refused({"val.de"});
  write_file(val, val_text);
  fs::rename(folder_ / "data", folder_ / "elsewhere");
  refused({"data"});
}

TEST_F(TrainCommand, vocabulary_too_large_for_the_text_is_a_data_error) {
  train::TrainConfig config = five_updates();
  config.stack.set("vocab_size", 5000);
  expect_refused(train("run", config), 3, {"5000"});
  EXPECT_FALSE(fs::exists(folder_ / "run"));
}

TEST_F(TrainCommand, bad_config_files_are_data_errors) {
  const auto refused = [&](const std::string& text, const std::vector<std::string>& words) {
    write_file(folder_ / "c.json", text);
    expect_refused(run_heddle({"train", "--config", (folder_ / "c.json").string(), "--data",
                               (folder_ / "data").string(), "--out", (folder_ / "run").string()}),
                   3, words);
    EXPECT_FALSE(fs::exists(folder_ / "run"));
  };
  refused("{\"d_model\": 32,\n \"max_updates\": }", {"c.json", "line 2"});
  refused("", {"c.json"});
  refused("{\"d_modle\": 32}", {"c.json", "'d_modle'", "'d_model'"});
  refused("{\"d_model\": \"wide\"}", {"c.json", "d_model", "wide"});
  fs::remove(folder_ / "c.json");
  expect_refused(run_heddle({"train", "--config", (folder_ / "c.json").string(), "--out",
                             (folder_ / "run").string()}),
                 3, {"c.json", "No such file"});
}

TEST_F(TrainCommand, config_file_trains_like_its_flags) {
  ASSERT_EQ(train("flags", five_updates()).exit_code, 0);
  write_file(folder_ / "c.json", to_json(five_updates()).dump());
  const CliResult result =
      run_heddle({"train", "--config", (folder_ / "c.json").string(), "--data",
                  (folder_ / "data").string(), "--out", (folder_ / "file").string()});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_TRUE(model_bytes(folder_ / "flags") == model_bytes(folder_ / "file"));
}

TEST_F(TrainCommand, folder_that_cannot_be_used_is_named) {
  write_file(folder_ / "file", "text");
  expect_refused(train("file", five_updates()), 3, {"file"});
  expect_refused(train("data", five_updates()), 2, {"data", "--out"});
  EXPECT_EQ(read_file(folder_ / "file"), "text");
  const std::string name(300, 'x');  // no file system takes it
  expect_refused(train(name, five_updates()), 3, {name});
  // Nobody may make folders in sysfs, root included; a bare chroot has none.
  if (!fs::exists("/sys/kernel")) return;
  std::vector<std::string> words = train_words(folder_, "run", five_updates());
  *std::find(words.begin(), words.end(), (folder_ / "run").string()) = "/sys/heddle-run";
  expect_refused(run_heddle(words), 6, {"/sys/heddle-run"});
}

TEST_F(TrainCommand, damaged_state_is_a_data_error_that_names_the_file) {
  ASSERT_EQ(train("run", five_updates()).exit_code, 0);
  train::TrainConfig config = five_updates();
  config.max_updates = 9;
  const fs::path snapshot = folder_ / "run" / "state" / "snapshot-000000005.safetensors";
  const std::string bytes = read_file(snapshot);
  write_file(snapshot, bytes.substr(0, bytes.size() / 2));
  expect_refused(train("run", config), 3, {"snapshot-000000005.safetensors", "bytes"});
  write_file(snapshot, bytes);
  EXPECT_EQ(train("run", config).exit_code, 0);
}

}  // namespace
}  // namespace heddle::testing
