// What the shells are told of heddle, and its manual pages: that bash offers what exists.
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "tests/support/cli_runner.h"

namespace heddle::testing {
namespace {

// What bash offers for the last of these words.
std::vector<std::string> offered(const std::vector<std::string>& words) {
  static const std::string script = run_heddle({"completion", "bash"}).out;
  std::string line = script + "COMP_WORDS=(";
  for (const std::string& word : words) line += " '" + word + "'";
  line += ")\nCOMP_CWORD=" + std::to_string(words.size() - 1) +
          "\n_heddle\nprintf '%s\\n' \"${COMPREPLY[@]}\"\n";
  const CliResult result = run_command({"bash", "-c", line});
  EXPECT_EQ(result.err, "");
  std::istringstream stream(result.out);
  std::vector<std::string> found;
  for (std::string word; stream >> word;) found.push_back(word);
  return found;
}

using Words = std::vector<std::string>;

bool holds(const Words& words, const std::string& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

TEST(BashCompletion, commands_are_offered_by_their_first_letters) {
  EXPECT_EQ(offered({"heddle", "tra"}), (Words{"train", "translate"}));
  EXPECT_EQ(offered({"heddle", "tokenizer", ""}),
            (Words{"train", "words", "encode", "decode", "info"}));
}

TEST(BashCompletion, flags_are_those_of_the_command_that_was_named) {
  EXPECT_EQ(offered({"heddle", "translate", "--bea"}), (Words{"--beam"}));
  EXPECT_TRUE(holds(offered({"heddle", "tokenizer", "train", "--"}), "--vocab-size"));
  EXPECT_FALSE(holds(offered({"heddle", "tokenizer", "train", "--"}), "--d-model"));
  EXPECT_TRUE(holds(offered({"heddle", "train", "--"}), "--d-model"));
}

TEST(BashCompletion, values_are_offered_where_there_are_few) {
  EXPECT_EQ(offered({"heddle", "train", "--activation-function", "gelu"}),
            (Words{"gelu", "gelu_new", "gelu_pytorch_tanh", "gelu_fast"}));
}

TEST(BashCompletion, a_model_is_left_to_the_names_of_files) {
  EXPECT_EQ(offered({"heddle", "translate", ""}), Words{});
  EXPECT_EQ(offered({"heddle", "train", "--out", ""}), Words{});
}

TEST(Completion, zsh_and_fish_name_every_command) {
  for (const char* shell : {"zsh", "fish"}) {
    const CliResult result = run_heddle({"completion", shell});
    EXPECT_EQ(result.exit_code, 0);
    for (const char* word : {"translate", "phrasebook", "vocab-size", "gelu_new"}) {
      EXPECT_NE(result.out.find(word), std::string::npos) << shell << " " << word;
    }
  }
}

TEST(Completion, unknown_shell_is_a_usage_error_that_names_the_known_ones) {
  const CliResult result = run_heddle({"completion", "tcsh"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_EQ(result.err, "heddle: completion: no shell 'tcsh' is known; choose bash, zsh or fish\n");
}

TEST(Manual, every_command_has_a_page_with_its_flags) {
  const TempDir folder;
  const CliResult result = run_heddle({"manual", "--out", (folder / "man1").string()});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const std::string page = read_file(folder / "man1/heddle-tokenizer-train.1");
  EXPECT_EQ(page.find(".\\\" Written by heddle manual.\n.TH HEDDLE\\-TOKENIZER\\-TRAIN 1"), 0u);
  EXPECT_NE(page.find("\\fB\\-\\-vocab\\-size\\fR \\fIINT\\fR"), std::string::npos) << page;
  EXPECT_TRUE(std::filesystem::exists(folder / "man1/heddle.1"));
  EXPECT_TRUE(std::filesystem::exists(folder / "man1/heddle-train.1"));
}

TEST(Manual, folder_that_cannot_be_made_is_named) {
  const TempDir folder;
  write_file(folder / "file", "in the way");
  const CliResult result = run_heddle({"manual", "--out", (folder / "file").string()});
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_NE(result.err.find((folder / "file").string()), std::string::npos) << result.err;
}

}  // namespace
}  // namespace heddle::testing
