// Limits that the system sets: the greatest size of a file (ulimit -f).
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/support/cli_runner.h"

namespace heddle::testing {
namespace {

// 1 is the smallest step of `ulimit -f`: 512 bytes or 1,024, by the shell.
CliResult with_small_files(const std::string& arguments, const TempDir& folder) {
  CliOptions options;
  options.folder = folder.path();
  return run_command({"sh", "-c", "ulimit -f 1 && exec \"$0\" " + arguments, kProgram}, options);
}

TEST(FileSizeLimit, is_a_full_disk_with_a_message_and_leaves_nothing_behind) {
  const TempDir folder;
  std::string text;
  for (int i = 0; i < 100; ++i)
    text += "the old man reads the two books of number " + std::to_string(i) + "\n";
  write_file(folder / "text", text);
  const CliResult result =
      with_small_files("tokenizer train --input text --output m.model --vocab-size 300", folder);
  EXPECT_EQ(result.exit_code, 6) << result.err;
  EXPECT_NE(result.err.find("m.model: cannot write: File too large (the limit of a file's size"),
            std::string::npos)
      << result.err;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
    EXPECT_EQ(entry.path().filename(), "text");
  }
}

TEST(FileSizeLimit, of_results_is_an_error_too) {
  const TempDir folder;
  const CliResult result = with_small_files("completion bash > results", folder);
  EXPECT_EQ(result.exit_code, 6) << result.err;
  EXPECT_NE(result.err.find("File too large"), std::string::npos) << result.err;
}

}  // namespace
}  // namespace heddle::testing
