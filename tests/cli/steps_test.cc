// heddle translate --page at the command line: the page beside the translation, and bad input.
#include <gtest/gtest.h>

#include "tests/cli/model_fixture.h"

namespace heddle::testing {
namespace {

class Steps : public ModelFixture {
 protected:
  TempDir folder;
  const std::string page = (folder / "page.html").string();

  CliResult translate(const std::string& input, std::vector<std::string> flags) {
    flags.insert(flags.begin(), {"translate", model()});
    return run_heddle(flags, with_input(input));
  }
};

TEST_F(Steps, translation_is_printed_as_without_them) {
  const CliResult result = translate("the old man\n", {"--beam", "3", "--page", page});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out, translate("the old man\n", {"--beam", "3"}).out);
  EXPECT_NE(read_file(page).find("Decoding: the old man"), std::string::npos);
}

TEST_F(Steps, no_sentence_or_several_are_usage_errors) {
  for (const std::string input : {"", "\n", "the old man\nmy sister\n"}) {
    const CliResult result = translate(input, {"--page", page});
    EXPECT_EQ(result.exit_code, 2) << input;
    EXPECT_NE(result.err.find("--page"), std::string::npos) << result.err;
    EXPECT_FALSE(std::filesystem::exists(page));
  }
}

TEST_F(Steps, page_that_cannot_be_written_is_an_error_before_any_work) {
  const CliResult result = translate("man\n", {"--page", "/no/such/folder/page.html"});
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_NE(result.err.find("/no/such/folder"), std::string::npos) << result.err;
  EXPECT_EQ(result.out, "");
}

}  // namespace
}  // namespace heddle::testing
