// What a command is to write is looked at before anything else: no work is lost for a wrong path.
#include <gtest/gtest.h>

#include "heddle/base/error.h"
#include "heddle/inspect/pages/page.h"
#include "tests/base/temporary.h"
#include "tests/cli/page_data.h"
#include "tests/support/cli_runner.h"

namespace heddle::testing {
namespace {

// Models and inputs are not there either, which every command would say if it looked there first.
TEST(Outputs, path_that_cannot_be_written_is_said_before_any_model_or_data_is_read) {
  const TempDir folder;
  write_file(folder / "file", "");
  const std::string bad = (folder / "file" / "out").string();
  const std::vector<std::vector<std::string>> all = {
      {"align", "/no/model", "--pairs", "/no/pairs", "-o", bad},
      {"analyze", "/no/model", "--page", bad},
      {"attention", "/no/model", "--text", "a", "--page", bad},
      {"classify", "/no/model", "--text", "a", "--page", bad},
      {"compare", "/no/run", "--page", bad},
      {"embed", "/no/model", "--text", "a", "--page", bad},
      {"eval", "/no/model", "--src", "/no/a", "--ref", "/no/b", "-o", bad},
      {"eval", "/no/model", "--src", "/no/a", "--ref", "/no/b", "--page", bad},
      {"eval", "/no/model", "--data", "/no/a", "--page", bad},
      {"explain", "/no/model", "--text", "a", "--page", bad},
      {"export", "/no/model", "-o", bad},
      {"fill", "/no/model", "--text", "[MASK]", "--page", bad},
      {"forward", "/no/model", "--input", "/no/inputs", "--output", bad},
      {"generate", "/no/model", "--prompt", "a", "--page", bad},
      {"info", "/no/model", "--profile=" + bad},
      {"manual", "-o", bad},
      {"phrasebook", "-o", bad, "--pairs", "10", "--held-out", "2"},
      {"shapes", "-o", bad, "--count", "10", "--held-out", "2"},
      {"positions", "/no/model", "--page", bad},
      {"tokenizer", "train", "--input", "/no/text", "-o", bad},
      {"tokenizer", "words", "--input", "/no/text", "-o", bad},
      {"translate", "/no/model", "--page", bad},
      {"train", "--recipe", "phrasebook", "-o", bad}};
  for (const auto& words : all) {
    const CliResult result = run_heddle(words);
    const std::string command = words[0] + " " + words[1];
    EXPECT_TRUE(result.exit_code == 3 || result.exit_code == 6) << command << ": " << result.err;
    EXPECT_NE(result.err.find(bad), std::string::npos) << command << ": " << result.err;
    EXPECT_EQ(result.err.find("/no/"), std::string::npos) << command << ": " << result.err;
    EXPECT_EQ(result.out, "") << command;
  }
}

TEST(Outputs, file_link_and_device_may_be_written_and_a_folder_may_not) {
  const TemporaryFolder folder;
  folder.write("file", "");
  std::filesystem::create_directory(folder / "sub");
  std::filesystem::create_symlink(folder / "file", folder / "sub/link");
  for (const std::string& path : {folder / "new", folder / "file", folder / "sub/link"}) {
    EXPECT_NO_THROW(inspect::check_output(path, "the page")) << path;
  }
  EXPECT_NO_THROW(inspect::check_output("/dev/null", "the page"));
  expect_error(ErrorKind::data, {"it is a folder"},
               [&] { inspect::check_output(folder / "sub", "x"); });
  expect_error(ErrorKind::data, {"does not exist"},
               [&] { inspect::check_output(folder / "no/x", "x"); });
  expect_error(ErrorKind::data, {"is a file"},
               [&] { inspect::check_output(folder / "file/x", "x"); });
  expect_error(ErrorKind::usage, {"empty"}, [&] { inspect::check_output("", "the page"); });
  expect_error(ErrorKind::usage, {"cannot write the page to '-'", "/dev/stdout"},
               [&] { inspect::check_output("-", "the page"); });
}

// Written by line, by a table, by JSON, as help, as a whole.
TEST(Outputs, full_standard_output_is_said_in_one_way) {
  CliOptions options;
  options.stdout_file = "/dev/full";
  options.input = std::string("the fox\n") + std::string(20000, 'a') + "\n";
  const std::string model = text_model("classify");
  for (const auto& words : std::vector<std::vector<std::string>>{{"--help"},
                                                                 {"completion", "bash"},
                                                                 {"analyze", "base"},
                                                                 {"analyze", "base", "--json"},
                                                                 {"info", model},
                                                                 {"tokenizer", "encode", model},
                                                                 {"classify", model},
                                                                 {"classify", model, "--json"}}) {
    const CliResult result = run_heddle(words, options);
    EXPECT_EQ(result.exit_code, 6) << words[0];
    EXPECT_TRUE(
        result.err.ends_with("heddle: standard output: cannot write: No space left on device\n"))
        << words[0] << ": " << result.err;
  }
}

}  // namespace
}  // namespace heddle::testing
