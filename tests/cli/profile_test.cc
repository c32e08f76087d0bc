// --profile on any command: tables, trace, equal results, and every way to end.
#include <sys/stat.h>

#include <csignal>

#include "tests/cli/model_fixture.h"
#include "tests/cli/traces.h"

namespace heddle::testing {
namespace {

constexpr const char* kText = "the old man reads two books!\n\nmy sister\nder alte Mann\n";

using ProfileTranslate = ModelFixture;

TEST_F(ProfileTranslate, output_is_the_same_and_the_trace_names_ops_and_layers) {
  const TempDir folder;
  const std::string path = (folder / "t.json").string();
  const CliResult plain = run_heddle({"translate", model(), "--beam", "2"}, with_input(kText));
  const CliResult result =
      run_heddle({"translate", "--profile", path, model(), "--beam", "2"}, with_input(kText));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out, plain.out);
  for (const char* part : {"\nprofile: ", "\nlinear  ", "\nattention  ", "\nbest_tokens  ",
                           "\ndecode step  ", "\ntokenise  ", "\noutside phases  ", "\ntrace: "}) {
    EXPECT_TRUE(contains("\n" + result.err, part)) << part << " in\n" << result.err;
  }
  const auto seen = read_trace(path);
  EXPECT_TRUE(seen.contains("linear forward model.encoder.layers.0.self_attn"));
  EXPECT_TRUE(seen.contains("decode step phase "));
}

TEST_F(ProfileTranslate, flag_may_stand_before_the_command_and_has_a_file_of_its_own) {
  const TempDir folder;
  CliOptions options = with_input(kText);
  options.folder = folder.path();
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"--profile", "translate", model()},
        {"translate", model(), "--profile"},
        {"translate", "--profile", model()}}) {
    const CliResult result = run_heddle(words, options);
    ASSERT_EQ(result.exit_code, 0) << result.err;
    EXPECT_TRUE(contains(result.err, "trace: heddle-trace.json")) << result.err;
    EXPECT_FALSE(read_trace(folder / "heddle-trace.json").empty());
    std::filesystem::remove(folder / "heddle-trace.json");
  }
  EXPECT_EQ(run_heddle({"--profile=mine", "translate", model()}, options).exit_code, 0);
  EXPECT_FALSE(read_trace(folder / "mine").empty());
}

TEST_F(ProfileTranslate, trace_that_cannot_be_written_is_an_error_before_the_work) {
  const CliResult result =
      run_heddle({"translate", model(), "--profile=/no/such/folder/t.json"}, with_input(kText));
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_EQ(result.out, "");
  EXPECT_TRUE(contains(result.err, "/no/such/folder/t.json: cannot write the trace of --profile"))
      << result.err;
}

TEST_F(ProfileTranslate, full_disk_is_a_system_error_behind_the_tables) {
  const CliResult result =
      run_heddle({"translate", model(), "--profile=/dev/full"}, with_input(kText));
  EXPECT_EQ(result.exit_code, 6);
  EXPECT_TRUE(contains(result.err, "profile: ")) << result.err;
  EXPECT_TRUE(contains(result.err, "No space left on device")) << result.err;
}

TEST_F(ProfileTranslate, command_that_fails_still_gives_its_profile_and_its_exit_code) {
  const TempDir folder;
  const std::string path = (folder / "t.json").string();
  const CliResult result =
      run_heddle({"translate", model(), "--profile", path}, with_input("my sister\ncaf\xE9\n"));
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_TRUE(contains(result.err, "not UTF-8")) << result.err;
  EXPECT_TRUE(read_trace(path).contains("load model phase ")) << result.err;
}

TEST_F(ProfileTranslate, wrong_flag_leaves_no_trace_file) {
  const TempDir folder;
  CliOptions options = with_input(kText);
  options.folder = folder.path();
  const CliResult result = run_heddle({"--profile", "translate", "--beems", "2"}, options);
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_TRUE(contains(result.err, "translate: unknown flag '--beems'")) << result.err;
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST_F(ProfileTranslate, signal_while_it_waits_for_input_gives_the_profile) {
  const TempDir folder;
  const std::string path = (folder / "t.json").string(), fifo = (folder / "fifo").string();
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  CliOptions options;
  options.signal = SIGINT;
  options.signal_when = after_seconds(3);
  const std::string words =
      fmt::format("exec {} translate {} --profile {} <> {}", kProgram, model(), path, fifo);
  const CliResult result = run_command({"bash", "-c", words}, options);
  EXPECT_EQ(result.exit_code, 130) << result.err;
  EXPECT_FALSE(result.timed_out);
  EXPECT_TRUE(contains(result.err, "\nread  ")) << result.err;
  EXPECT_TRUE(read_trace(path).contains("read phase "));
}

}  // namespace
}  // namespace heddle::testing
