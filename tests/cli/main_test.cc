// The program's edges: help, version, unknown words, closed and full outputs.
#include <gtest/gtest.h>

#include <string>

#include "tests/support/cli_runner.h"

namespace heddle::testing {
namespace {

TEST(Program, version_prints_name_and_number_on_stdout) {
  const CliResult result = run_heddle({"--version"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.out, "heddle 0.1.0\n");
  EXPECT_EQ(result.err, "");
}

TEST(Program, help_goes_to_stdout) {
  const CliResult result = run_heddle({"--help"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_TRUE(contains(result.out, "--version")) << result.out;
  EXPECT_EQ(result.err, "");
}

TEST(Program, no_command_is_a_usage_error) {
  const CliResult result = run_heddle({});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_EQ(result.out, "");
  EXPECT_TRUE(contains(result.err, "heddle --help")) << result.err;
}

TEST(Program, unknown_flag_names_the_nearest_one) {
  const CliResult result = run_heddle({"--verzion"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_EQ(result.out, "");
  EXPECT_TRUE(contains(result.err, "unknown flag '--verzion'")) << result.err;
  EXPECT_TRUE(contains(result.err, "Did you mean '--version'?")) << result.err;
}

TEST(Program, unknown_command_is_named) {
  const CliResult result = run_heddle({"xyzzy"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_TRUE(contains(result.err, "heddle: unknown command 'xyzzy'")) << result.err;
  EXPECT_FALSE(contains(result.err, "Did you mean")) << result.err;
}

TEST(Program, mistyped_command_names_the_nearest_one) {
  const CliResult result = run_heddle({"scoer"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_EQ(result.err,
            "heddle: unknown command 'scoer'. Did you mean 'score'? See heddle --help\n");
}

TEST(Program, unknown_flag_of_a_command_comes_before_a_missing_one) {
  const CliResult result = run_heddle({"score", "--lowercas"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_EQ(result.err,
            "heddle: score: unknown flag '--lowercas'. Did you mean '--lowercase'? "
            "See heddle score --help\n");
}

TEST(Program, missing_flag_of_a_command_is_named) {
  const CliResult result = run_heddle({"score"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_EQ(result.err, "heddle: score: --hyp is required. See heddle score --help\n");
}

TEST(Program, full_disk_on_stdout_is_a_system_error) {
  CliOptions options;
  options.stdout_file = "/dev/full";
  const CliResult result = run_heddle({"--help"}, options);
  EXPECT_EQ(result.exit_code, 6);
  EXPECT_TRUE(contains(result.err, "No space left on device")) << result.err;
}

TEST(Program, closed_stdout_is_a_system_error) {
  const CliResult result = run_command({"sh", "-c", std::string(kProgram) + " --help >&-"});
  EXPECT_EQ(result.exit_code, 6);
  EXPECT_TRUE(contains(result.err, "standard output: cannot write: Bad file descriptor"))
      << result.err;
}

TEST(Program, closed_pipe_ends_quietly) {
  // `true` has ended before the program writes.
  const CliResult result =
      run_command({"sh", "-c", std::string("(sleep 0.3; ") + kProgram + " --help) | true"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.err, "");
}

TEST(CliRunner, input_larger_than_a_pipe_comes_back_whole) {
  CliOptions options;
  options.input.assign(1 << 20, 'x');
  const CliResult result = run_command({"cat"}, options);
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.out, options.input);
}

TEST(CliRunner, signal_ends_the_program_at_the_time_asked) {
  CliOptions options;
  options.signal_when = after_seconds(0.05);
  const CliResult result = run_command({"sleep", "30"}, options);
  EXPECT_EQ(result.exit_code, 137);
  EXPECT_FALSE(result.timed_out);
}

TEST(CliRunner, program_beyond_its_time_is_killed) {
  CliOptions options;
  options.timeout_seconds = 0.05;
  EXPECT_TRUE(run_command({"sleep", "30"}, options).timed_out);
}

TEST(CliRunner, environment_and_folder_reach_the_program) {
  const TempDir folder;
  write_file(folder / "a.txt", "here");
  CliOptions options;
  options.folder = folder.path();
  options.environment["HEDDLE_TEST_WORD"] = "word";
  EXPECT_EQ(run_command({"sh", "-c", "cat a.txt; echo $HEDDLE_TEST_WORD"}, options).out,
            "hereword\n");
}

}  // namespace
}  // namespace heddle::testing
