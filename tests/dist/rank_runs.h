// Runs of `heddle train` by several processes.
#pragma once

#include <gtest/gtest.h>

#include <future>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "heddle/base/json/json.h"
#include "heddle/train/config.h"
#include "tests/cli/train_runs.h"

namespace heddle::testing {

/// What each rank ended with, in order, where each has words and options of its own. They meet at a
/// file in `folder`.
inline std::vector<CliResult> run_each(std::vector<std::vector<std::string>> all,
                                       const TempDir& folder,
                                       const std::vector<CliOptions>& options) {
  static int meetings = 0;
  const std::string place = (folder / fmt::format("meeting-{}", ++meetings)).string();
  const size_t ranks = all.size();
  std::vector<std::future<CliResult>> running;
  for (size_t rank = 0; rank < ranks; ++rank) {
    std::vector<std::string>& words = all[rank];
    if (words[0] != "score") words.insert(words.end(), {"--threads", "1"});
    CliOptions own = options[rank];
    if (ranks > 1) {
      own.environment["HEDDLE_RENDEZVOUS"] = "file://" + place;
      own.environment["HEDDLE_RANK"] = std::to_string(rank);
      own.environment["HEDDLE_RANKS"] = std::to_string(ranks);
    }
    running.push_back(
        std::async(std::launch::async, [words, own] { return run_heddle(words, own); }));
  }
  std::vector<CliResult> results;
  for (auto& one : running) results.push_back(one.get());
  return results;
}

/// The same with the same options.
inline std::vector<CliResult> run_each(const std::vector<std::vector<std::string>>& all,
                                       const TempDir& folder, const CliOptions& options = {}) {
  return run_each(all, folder, std::vector<CliOptions>(all.size(), options));
}

/// The same with the same words.
inline std::vector<CliResult> run_ranks(int ranks, const TempDir& folder,
                                        const std::vector<std::string>& words,
                                        const CliOptions& options = {}) {
  return run_each(std::vector(static_cast<size_t>(ranks), words), folder, options);
}

inline CliOptions fed_with(const std::string& text) {
  CliOptions options;
  options.input = text;
  return options;
}

/// What a command said, without its progress, of which a slow machine has a line every 10 s.
inline std::string without_progress(const std::string& said) {
  static const std::regex progress("[a-z]+ +[0-9]+ %(  .*)?");
  std::string rest;
  std::istringstream lines(said);
  for (std::string line; std::getline(lines, line);) {
    if (!std::regex_match(line, progress)) rest += line + "\n";
  }
  return rest;
}

/// Expects that rank 0 of several says all, and what one process says.
inline void expect_as_one(const TempDir& folder, const std::vector<std::string>& words,
                          const std::string& input = "", int exit_code = 0) {
  const CliResult one = run_ranks(1, folder, words, fed_with(input))[0];
  EXPECT_EQ(one.exit_code, exit_code) << one.err;
  EXPECT_FALSE(one.out.empty());
  for (const int ranks : {2, 4}) {
    const std::vector<CliResult> all = run_ranks(ranks, folder, words, fed_with(input));
    EXPECT_TRUE(all[0].out == one.out) << ranks << " ranks: " << words[0];
    EXPECT_EQ(without_progress(all[0].err), without_progress(one.err));
    for (size_t rank = 0; rank < all.size(); ++rank) {
      EXPECT_EQ(all[rank].exit_code, exit_code) << all[rank].err;
      if (rank > 0) {
        EXPECT_EQ(all[rank].out, "");
      }
    }
  }
}

/// Trains by so many ranks with a config of any task, and expects that all end well.
inline void train_by_ranks(int ranks, const TempDir& folder, const std::string& run,
                           const train::TrainConfig& config, const std::vector<std::string>& more) {
  const std::string file = (folder / (run + ".json")).string();
  write_file(file, to_json(config).dump());
  std::vector<std::string> words = {"train", "--config", file, "--out", (folder / run).string()};
  words.insert(words.end(), more.begin(), more.end());
  for (const CliResult& result : run_ranks(ranks, folder, words)) {
    EXPECT_EQ(result.exit_code, 0) << ranks << " ranks: " << result.err;
  }
}

/// The last snapshot of a run: weights, moments, what is carried.
inline std::string snapshot_bytes(const std::filesystem::path& run) {
  std::string bytes;
  for (const auto& [name, file] : bytes_below(run / "state")) {
    if (name.starts_with("snapshot-")) bytes += name + file;
  }
  return bytes;
}

/// Trains by each of these numbers of ranks, and by one number up to update `stop` and another one
/// from there on (which logs and validates there too); expects the same models, states and losses.
inline void expect_same_for_ranks(const std::vector<int>& counts, const TempDir& folder,
                                  train::TrainConfig config, const std::vector<std::string>& more,
                                  int64_t stop = 0) {
  const auto first = folder / fmt::format("by-{}", counts[0]);
  for (const int ranks : counts) {
    const std::string run = fmt::format("by-{}", ranks);
    train_by_ranks(ranks, folder, run, config, more);
    EXPECT_FALSE(snapshot_bytes(folder / run).empty());
    EXPECT_TRUE(snapshot_bytes(folder / run) == snapshot_bytes(first)) << run;
    EXPECT_EQ(log_without_times(folder / run), log_without_times(first)) << run;
    for (const char* model : {"last", "best"}) {
      EXPECT_TRUE(bytes_below(folder / run / model) == bytes_below(first / model)) << run << model;
    }
  }
  if (stop == 0) return;
  const int64_t end = config.max_updates;
  for (const auto& [before, behind] :
       {std::pair{counts.back(), counts[0]}, {counts[0], counts[1]}}) {
    const std::string run = fmt::format("by-{}-then-{}", before, behind);
    config.max_updates = stop;
    train_by_ranks(before, folder, run, config, more);
    config.max_updates = end;
    train_by_ranks(behind, folder, run, config, more);
    EXPECT_TRUE(snapshot_bytes(folder / run) == snapshot_bytes(first)) << run;
    EXPECT_TRUE(bytes_below(folder / run / "last") == bytes_below(first / "last")) << run;
  }
}

}  // namespace heddle::testing
