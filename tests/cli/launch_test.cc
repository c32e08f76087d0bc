// heddle launch: several processes of one command, their lines, their ends.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/support/cli_runner.h"
#include "tests/support/wait.h"

namespace heddle::testing {
namespace {

// Lines of a text, sorted: ranks speak as they come.
std::vector<std::string> sorted_lines(const std::string& text) {
  std::istringstream all(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(all, line);) lines.push_back(line);
  std::ranges::sort(lines);
  return lines;
}

// Processes of this machine with that word on their command line.
int64_t processes_with(const std::string& word) {
  int64_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    std::ifstream file(entry.path() / "cmdline", std::ios::binary);
    const std::string words{std::istreambuf_iterator<char>(file), {}};
    count += contains(words, word);
  }
  return count;
}

TEST(LaunchCommand, rank_0_has_the_outputs_and_the_others_lines_name_their_rank) {
  const CliResult alone = run_heddle({"tokenizer", "--help"});
  const CliResult both = run_heddle({"launch", "-n", "2", "tokenizer", "--help"});
  EXPECT_EQ(both.exit_code, 0) << both.err;
  EXPECT_EQ(both.out, alone.out);
  std::vector<std::string> expected;
  for (const std::string& line : sorted_lines(alone.out)) expected.push_back("rank 1: " + line);
  std::vector<std::string> others = sorted_lines(both.err);
  std::erase_if(others, [](const std::string& line) { return line.starts_with("warning: "); });
  EXPECT_EQ(others, expected);
}

TEST(LaunchCommand, rank_0_reads_the_input) {
  TempDir folder;
  write_file(folder / "ref.txt", "a b c d e\n");
  const std::vector<std::string> words = {"score", "--hyp", "-", "--ref",
                                          (folder / "ref.txt").string()};
  std::vector<std::string> launched = {"launch", "-n", "1", "heddle"};
  launched.insert(launched.end(), words.begin(), words.end());
  CliOptions options;
  options.input = "a b c d e\n";
  const CliResult result = run_heddle(launched, options);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out, run_heddle(words, options).out);
}

TEST(LaunchCommand, takes_a_command_behind_dashes_as_it_stands) {
  TempDir folder;
  write_file(folder / "ref.txt", "a b c d e\n");
  const auto expect_same = [&](const std::vector<std::string>& words) {
    std::vector<std::string> launched = {"launch", "-n", "1", "--"};
    launched.insert(launched.end(), words.begin(), words.end());
    CliOptions options;
    options.input = "a b c d e\n";
    const CliResult result = run_heddle(launched, options), alone = run_heddle(words, options);
    EXPECT_EQ(result.exit_code, alone.exit_code) << result.err;
    EXPECT_EQ(result.out, alone.out);
    EXPECT_TRUE(contains(result.err, alone.err)) << result.err;
  };
  expect_same({"score", "--hyp", "-", "--ref", (folder / "ref.txt").string()});
  expect_same({"score", "--hyp", "-", "--ref", (folder / "ref.txt").string(), "--", "-n"});
}

TEST(LaunchCommand, ends_with_the_exit_code_of_a_rank_that_failed_and_names_it) {
  const CliResult result =
      run_heddle({"launch", "-n", "2", "--restarts", "3", "info", "there-is-no-such-model"});
  EXPECT_EQ(result.exit_code, 3) << result.err;
  EXPECT_TRUE(contains(result.err, "rank 1: heddle: ")) << result.err;
  EXPECT_TRUE(contains(result.err, " ended with exit code 3")) << result.err;
  EXPECT_FALSE(contains(result.err, "again")) << "a missing file is not found by a second start";
}

TEST(LaunchCommand, wrong_flags_are_usage_errors) {
  const auto expect = [](std::vector<std::string> words, const std::string& text) {
    words.insert(words.begin(), "launch");
    const CliResult result = run_heddle(words);
    EXPECT_EQ(result.exit_code, 2) << result.err;
    EXPECT_TRUE(contains(result.err, text)) << result.err;
  };
  expect({"-n", "2"}, "a command is needed");
  expect({"-n", "2", "--"}, "a command is needed");
  expect({"info", "model"}, "--ranks is 0; 1, 2, 4");
  expect({"-n", "3", "info", "model"}, "--ranks is 3; 1, 2, 4");
  expect({"-n", "two", "info", "model"}, "a whole number");
  expect({"-n", "2", "--rank", "3", "info"}, "unknown flag '--rank'");
  expect({"-n", "2", "--threads-per-rank", "100000", "info"}, "--threads-per-rank is 100000");
  expect({"-n", "2", "--restarts", "1", "train", "--out", "run", "--overwrite"},
         "--overwrite would begin anew at each restart");
  expect({"-n", "2", "launch", "-n", "2", "info"}, "cannot start itself");
}

// Something that goes on until it is ended; `mark` finds its processes.
std::vector<std::string> endless(const std::string& mark) {
  return {"launch", "-n", "2", "bench", "train-tiny", "--threads", "1", "--seconds", mark};
}

// Once the launcher and both ranks are there.
CliOptions signalled(int signal, const std::string& mark) {
  CliOptions options;
  options.signal = signal;
  options.signal_when = [mark](const CliResult&) { return processes_with(mark) == 3; };
  return options;
}

TEST(LaunchCommand, passes_signals_on_and_waits_for_all) {
  const std::string mark = fmt::format("600.{}", getpid());
  std::vector<std::string> words = endless(mark);
  words.insert(words.begin() + 1, {"--restarts", "2"});  // not after what someone asked for
  const CliResult result = run_heddle(words, signalled(SIGTERM, mark));
  EXPECT_EQ(result.exit_code, 128 + SIGTERM) << result.err;
  EXPECT_EQ(processes_with(mark), 0);
}

// Sent to a rank alone: as little a failure as one that goes by the launcher.
TEST(LaunchCommand, does_not_start_again_what_a_signal_has_ended) {
  const std::string mark = fmt::format("602.{}", getpid());
  std::string command = kProgram;
  for (const std::string& word : endless(mark)) command += " " + word;
  command.insert(command.find(" -n"), " --restarts 2");
  command +=
      " & p=$!; rank=; while [ -z \"$rank\" ]; do sleep 0.1;"
      " for q in $(cat /proc/$p/task/$p/children); do"
      " if grep -qsz '^HEDDLE_RANK=1$' /proc/$q/environ; then rank=$q; fi; done; done;"
      " sleep 1; kill $rank; wait $p";
  const CliResult result = run_command({"sh", "-c", command});
  EXPECT_EQ(result.exit_code, 128 + SIGTERM) << result.err;
  EXPECT_TRUE(contains(result.err, "rank 1 ")) << result.err;
  EXPECT_FALSE(contains(result.err, "again")) << result.err;
  EXPECT_EQ(processes_with(mark), 0);
}

TEST(LaunchCommand, leaves_nothing_behind_when_it_is_killed) {
  const std::string mark = fmt::format("601.{}", getpid());
  const CliResult result = run_heddle(endless(mark), signalled(SIGKILL, mark));
  EXPECT_EQ(result.exit_code, 128 + SIGKILL) << result.err;
  EXPECT_FALSE(result.timed_out);
  EXPECT_TRUE(comes_true([&] { return processes_with(mark) == 0; }));
}

}  // namespace
}  // namespace heddle::testing
