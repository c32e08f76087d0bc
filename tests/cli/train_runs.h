// Runs of `heddle train` that tests kill, stop and starve.
#pragma once

#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "heddle/base/json/json.h"
#include "tests/support/cli_runner.h"
#include "tests/support/faults.h"
#include "tests/train/small_run.h"

namespace heddle::testing {

inline std::vector<std::string> train_words(const TempDir& folder, const std::string& run,
                                            const train::TrainConfig& config) {
  std::vector<std::string> words = {"train", "--data", (folder / "data").string(), "--out",
                                    (folder / run).string()};
  const auto flags = flags_of(config);
  words.insert(words.end(), flags.begin(), flags.end());
  return words;
}

inline CliResult run_train(const TempDir& folder, const std::string& run,
                           const train::TrainConfig& config,
                           const std::vector<std::string>& more = {},
                           const CliOptions& options = {}) {
  std::vector<std::string> words = train_words(folder, run, config);
  words.insert(words.end(), more.begin(), more.end());
  return run_heddle(words, options);
}

/// Starts the run, sends it a signal once the shell's `condition` holds, and waits for the end.
inline CliResult stop_when(const std::string& condition, const TempDir& folder,
                           const std::string& run, const train::TrainConfig& config,
                           const std::string& signal, const std::vector<std::string>& more = {}) {
  std::string command = kProgram;
  for (const std::string& w : train_words(folder, run, config)) command += " '" + w + "'";
  for (const std::string& w : more) command += " '" + w + "'";
  return run_command({"sh", "-c",
                      command + " & p=$!; until " + condition + "; do sleep 0.01; done; kill -" +
                          signal + " $p; wait $p"});
}

/// Starts the run, sends it a signal as it first writes to its log, and waits for the end.
inline CliResult stop_at_log(const TempDir& folder, const std::string& run,
                             const train::TrainConfig& config, int signal,
                             const std::vector<std::string>& more = {}) {
  std::vector<std::string> words = train_words(folder, run, config);
  words.insert(words.end(), more.begin(), more.end());
  const FaultResult result = run_with_fault(words, {.kind = Fault::Kind::send,
                                                    .signal = signal,
                                                    .at = 1,
                                                    .folder = folder.path(),
                                                    .only = "write " + run + "/log.jsonl"});
  EXPECT_TRUE(result.was_hit) << result.run.err;
  return result.run;
}

/// log.jsonl without what depends on the clock; a line that is no JSON fails the test.
inline std::vector<std::string> log_without_times(const std::filesystem::path& run) {
  std::vector<std::string> lines;
  const std::string text = read_file(run / "log.jsonl");
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = text.find('\n', begin);
    if (end == std::string::npos) {
      ADD_FAILURE() << "the last line has no end";
      break;
    }
    Json line = Json::parse(text.substr(begin, end - begin), "log.jsonl");
    begin = end + 1;
    if (line.contains("ranks")) continue;  // times alone
    line.erase("seconds");
    line.erase("tokens_per_second");
    line.erase("images_per_second");
    line.erase("share_of_peak");
    lines.push_back(line.dump());
  }
  return lines;
}

/// The bytes of all files below a folder, by their names.
using Bytes = std::map<std::string, std::string>;
inline Bytes bytes_below(const std::filesystem::path& folder) {
  Bytes bytes;
  for (const auto& [name, file] : files_below(folder)) bytes[name] = file.bytes;
  return bytes;
}

/// Settings of the kill tests: many saves, each kind of model, 120 updates.
inline train::TrainConfig often_saving(const std::string& average, const std::string& precision) {
  train::TrainConfig c = small_config();
  c.max_updates = 120;
  c.validate_every = 10;
  c.checkpoint_every = 4;
  c.accumulate = 2;
  c.ema_decay = 0.9;
  c.average = average;
  c.average_count = 3;
  c.precision = precision;
  if (average == "best") c.select = c.early_stop = "bleu", c.patience = 1000;
  return c;
}

/// Trains one run whole on one thread, and one on 1 and 2 threads by turns that is killed `kills`
/// times at random moments; both must end in the same models and the same log.
inline void expect_killed_run_equals_whole(const train::TrainConfig& config, int kills,
                                           uint32_t seed) {
  const TempDir folder;
  write_pairs(folder / "data");
  const CliResult whole = run_train(folder, "whole", config, {"--threads", "1"});
  ASSERT_EQ(whole.exit_code, 0) << whole.err;
  std::mt19937 random(seed);
  int hits = 0;
  while (hits < kills) {
    // Short lives kill while starting, before the first state; long ones get a run further.
    const double share = std::uniform_real_distribution<>(0, 1)(random);
    CliOptions options;
    options.signal_when =
        after_seconds((hits % 3 == 0 ? 0.15 : 0.5) * share * (whole.seconds + 0.5));
    const CliResult part =
        run_train(folder, "killed", config, {"--threads", hits % 2 == 0 ? "1" : "2"}, options);
    if (part.exit_code == 0) {  // it got away; another one takes the other kills
      EXPECT_TRUE(model_bytes(folder / "whole") == model_bytes(folder / "killed"));
      std::filesystem::remove_all(folder / "killed");
      continue;
    }
    ASSERT_EQ(part.exit_code, 137) << part.err;
    ++hits;
  }
  const CliResult end = run_train(folder, "killed", config);
  ASSERT_EQ(end.exit_code, 0) << end.err;
  EXPECT_TRUE(model_bytes(folder / "whole") == model_bytes(folder / "killed"));
  EXPECT_EQ(log_without_times(folder / "whole"), log_without_times(folder / "killed"));
  for (const auto& [name, file] : files_below(folder / "killed")) {
    EXPECT_EQ(name.find(".tmp-"), std::string::npos) << name << " was left behind";
  }
}

}  // namespace heddle::testing
