// What a command is to write is looked at before anything else: no work is lost for a wrong path.
#include <gtest/gtest.h>

#include "heddle/base/error.h"
#include "heddle/inspect/pages/page.h"
#include "tests/base/temporary.h"
#include "tests/cli/model_fixture.h"
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
      {"analyze", "/no/model", "--page", bad + ".html"},
      {"attention", "/no/model", "--text", "a", "--page", bad + ".html"},
      {"classify", "/no/model", "--text", "a", "--page", bad + ".html"},
      {"compare", "/no/run", "--page", bad + ".html"},
      {"embed", "/no/model", "--text", "a", "--page", bad + ".html"},
      {"eval", "/no/model", "--src", "/no/a", "--ref", "/no/b", "-o", bad},
      {"eval", "/no/model", "--src", "/no/a", "--ref", "/no/b", "--page", bad + ".html"},
      {"eval", "/no/model", "--data", "/no/a", "--page", bad + ".html"},
      {"explain", "/no/model", "--text", "a", "--page", bad + ".html"},
      {"export", "/no/model", "-o", bad},
      {"fill", "/no/model", "--text", "[MASK]", "--page", bad + ".html"},
      {"forward", "/no/model", "--input", "/no/inputs", "--output", bad},
      {"generate", "/no/model", "--prompt", "a", "--page", bad + ".html"},
      {"info", "/no/model", "--profile=" + bad},
      {"manual", "-o", bad},
      {"phrasebook", "-o", bad, "--pairs", "10", "--held-out", "2"},
      {"shapes", "-o", bad, "--count", "10", "--held-out", "2"},
      {"positions", "/no/model", "--page", bad + ".html"},
      {"tokenizer", "train", "--input", "/no/text", "-o", bad},
      {"tokenizer", "words", "--input", "/no/text", "-o", bad},
      {"translate", "/no/model", "--page", bad + ".html"},
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

using OutputFiles = ModelFixture;

// By any of its names.
TEST_F(OutputFiles, what_is_read_is_never_written) {
  const TempDir folder;
  const auto path = [&](const char* name) { return (folder / name).string(); };
  const std::string text = "the old man\n";
  write_file(path("a"), text);
  std::filesystem::create_hard_link(path("a"), path("b"));
  std::filesystem::create_symlink(path("a"), path("c"));
  std::filesystem::copy(model(), path("m"), std::filesystem::copy_options::recursive);
  const std::string weights = path("m") + "/model.safetensors", config = path("m") + "/config.json";
  const std::string bytes = read_file(weights), settings = read_file(config);
  const std::string m = path("m"), a = path("a"), ref = path("ref");
  write_file(ref, text);
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
           {"eval", m, "--src", a, "--ref", ref, "-o", path("b")},
           {"eval", m, "--src", ref, "--ref", a, "--page", path("c")},
           {"align", m, "--src", a, "--tgt", ref, "-o", path("b")},
           {"align", m, "--src", ref, "--tgt", a, "-o", a},
           {"forward", m, "--input", a, "-o", weights},
           {"forward", m, "--input", a, "-o", path("c")},
           {"translate", m, a, "--page", a},
           {"attention", m, "--text", "a", "--page", config},
           {"embed", m, "--text", "a", "--page", weights},
           {"analyze", m, "--page", config},
           {"positions", m, "--page", config},
           {"augment", a, "--page", a},
           {"compare", m, "--page", config},
           {"shortlist", m, "--src", a, "--tgt", ref, "-o", m + "/tokenizer.model"},
           {"score", "--hyp", a, "--ref", ref, "--profile=" + path("c")},
           {"--profile=" + a, "translate", m, a}}) {
    const CliResult result = run_heddle(words);
    EXPECT_EQ(result.exit_code, 2) << words[0] << result.err;
    EXPECT_NE(result.err.find("would be overwritten"), std::string::npos) << result.err;
    EXPECT_TRUE(read_file(a) == text && read_file(weights) == bytes);
    EXPECT_EQ(read_file(config), settings);
  }
  const CliResult twice =
      run_heddle({"eval", m, "--src", a, "--ref", ref, "-o", path("new"), "--page", path("new")});
  EXPECT_EQ(twice.exit_code, 2) << twice.err;
  EXPECT_NE(twice.err.find("would both write"), std::string::npos) << twice.err;
}

TEST_F(OutputFiles, what_comes_from_the_standard_input_is_not_written) {
  const TempDir folder;
  const std::string text = "the old man\n", a = (folder / "a").string();
  const std::string page = (folder / "page.html").string(), ref = (folder / "ref").string();
  for (const std::string& path : {a, page, ref}) write_file(path, text);
  for (const auto& [flags, file] :
       {std::pair{"eval " + model() + " --src - --ref " + ref + " -o " + a, a},
        std::pair{"eval " + model() + " --src /dev/stdin --ref " + ref + " -o " + a, a},
        std::pair{"tokenizer train --input - --vocab-size 300 -o " + a, a},
        std::pair{"translate " + model() + " --page " + page, page}}) {
    const CliResult result =
        run_command({"sh", "-c", fmt::format("{} {} < {}", kProgram, flags, file)});
    EXPECT_EQ(result.exit_code, 2) << flags << result.err;
    EXPECT_NE(result.err.find("would be overwritten"), std::string::npos) << result.err;
    EXPECT_EQ(read_file(file), text) << flags;
  }
}

TEST_F(OutputFiles, earlier_results_beside_a_model_are_replaced) {
  const TempDir folder;
  std::filesystem::copy(model(), folder / "m", std::filesystem::copy_options::recursive);
  const std::string m = (folder / "m").string();
  write_file(folder / "a", "the old man\n");
  const std::string a = (folder / "a").string();
  for (int time = 0; time < 2; ++time) {
    const CliResult result =
        run_heddle({"eval", m, "--src", a, "--ref", a, "-o", m + "/hyp.txt", "--page",
                    m + "/eval.html", "--profile=" + m + "/trace.json"});
    EXPECT_EQ(result.exit_code, 0) << result.err;
  }
  EXPECT_EQ(run_heddle({"analyze", "base", "--page", "/dev/null", "--profile=/dev/null"}).exit_code,
            0);
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
