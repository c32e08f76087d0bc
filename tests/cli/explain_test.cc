// heddle explain at the command line: matrices, a model, and bad input.
#include <gtest/gtest.h>

#include "tests/cli/model_fixture.h"

namespace heddle::testing {
namespace {

class Explain : public ModelFixture {
 protected:
  static CliResult explain(std::vector<std::string> flags) {
    flags.insert(flags.begin(), "explain");
    return run_heddle(flags);
  }
  static void expect_error(const std::vector<std::string>& flags, int code,
                           const std::string& part) {
    const CliResult result = explain(flags);
    EXPECT_EQ(result.exit_code, code) << part;
    EXPECT_NE(result.err.find(part), std::string::npos) << result.err;
    EXPECT_EQ(result.out, "");
  }
};

TEST_F(Explain, worked_examples_come_out) {
  const CliResult scaled = explain({"--scores", "112 96", "--divide", "8", "--v", "1; 2"});
  ASSERT_EQ(scaled.exit_code, 0) << scaled.err;
  EXPECT_NE(scaled.out.find("0.8808     0.1192"), std::string::npos) << scaled.out;
  EXPECT_NE(scaled.out.find("1.1192"), std::string::npos);  // 0.8808 * 1 + 0.1192 * 2
  const CliResult kernel = explain({"--q", "162", "--k", "160; 166; 173", "--score", "gaussian"});
  EXPECT_NE(kernel.out.find("0.9975     0.0025     0.0000"), std::string::npos) << kernel.out;
}

TEST_F(Explain, model_is_followed_as_text_and_as_page) {
  const TempDir folder;
  const CliResult text = explain({model(), "--text", "the old man", "--kind", "encoder"});
  ASSERT_EQ(text.exit_code, 0) << text.err;
  EXPECT_NE(text.out.find("12. Output"), std::string::npos) << text.out;
  const std::string page = (folder / "page.html").string();
  const CliResult written =
      explain({model(), "--text", "the old man", "--layer", "1", "--head", "2", "--page", page});
  ASSERT_EQ(written.exit_code, 0) << written.err;
  EXPECT_EQ(written.out, "");
  EXPECT_NE(
      read_file(page).find("cross attention, layer 1, head 2 (of layers 0 to 1 and heads 0 to 3)"),
      std::string::npos);
}

// exp(-720) has fewer bits than other doubles.
TEST_F(Explain, weights_next_to_zero_are_on_the_page_too) {
  const TempDir folder;
  const std::string page = (folder / "page.html").string();
  const CliResult result = explain({"--scores", "0 -720", "--page", page});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(read_file(page).find("[[1.0, 0.0]]"), std::string::npos);
}

TEST_F(Explain, run_is_called_by_its_name) {
  const TempDir folder;
  std::filesystem::create_directory(folder / "m30k");
  std::filesystem::copy(model(), folder / "m30k" / "best",
                        std::filesystem::copy_options::recursive);
  const CliResult text = explain({(folder / "m30k").string(), "--text", "the old man"});
  ASSERT_EQ(text.exit_code, 0) << text.err;
  EXPECT_NE(text.out.find("\nm30k: cross attention"), std::string::npos) << text.out;
}

TEST_F(Explain, bad_input_is_an_error_that_says_what_to_do) {
  expect_error({}, 2, "nothing to explain");
  expect_error({"--q", "1"}, 2, "--q and --k go together");
  expect_error({"--q", "1 x", "--k", "1 2"}, 2, "'x' in row 1");
  expect_error({"--scores", "1", "--score", "additive"}, 2, "--score is 'additive'");
  expect_error({"--scores", "1", "--score", "gaussian"}, 2, "--score says how --q and --k");
  expect_error({"--q", "1e200 1", "--k", "1e200 2"}, 2, "step 3 (Scores) are not finite");
  expect_error({"--scores", "1e300", "--divide", "1e-300"}, 2, "step 2 (Divided)");
  expect_error({"--scores", "1", "--page", "/no/such/folder/a.html"}, 3, "/no/such/folder");
  expect_error({model()}, 2, "--text is missing");
  expect_error({model(), "--text", " "}, 2, "--text is empty");
  expect_error({model(), "--text", "man", "--layer", "2"}, 2, "--layer 2");
  expect_error({model(), "--text", "man", "--head", "4"}, 2, "--head 4");
  expect_error({model(), "--text", "man", "--scores", "1"}, 2, "explain one of them");
}

}  // namespace
}  // namespace heddle::testing
