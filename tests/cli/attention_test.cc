// heddle attention at the command line: table, JSON, page, and bad input.
#include <gtest/gtest.h>

#include "heddle/base/json/json.h"
#include "tests/cli/model_fixture.h"

namespace heddle::testing {
namespace {

class Attention : public ModelFixture {
 protected:
  TempDir folder;

  CliResult attention(std::vector<std::string> flags) {
    flags.insert(flags.begin(), {"attention", model()});
    return run_heddle(flags);
  }
  void expect_usage_error(const std::vector<std::string>& flags, const std::string& part) {
    const CliResult result = attention(flags);
    EXPECT_EQ(result.exit_code, 2) << part;
    EXPECT_NE(result.err.find(part), std::string::npos) << result.err;
    EXPECT_EQ(result.out, "");
  }
};

TEST_F(Attention, table_ranks_the_heads_of_the_models_own_translation) {
  const CliResult result = attention({"--text", "the old man", "--from", "man", "--to", "old"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.out.find("source: the old man\ntarget: "), std::string::npos) << result.out;
  EXPECT_NE(result.out.find("man -> old"), std::string::npos);
  EXPECT_NE(result.out.find("encoder, layer 1, head "), std::string::npos);
}

TEST_F(Attention, json_and_page_hold_the_chosen_heads) {
  const std::string page = (folder / "a.html").string();
  const CliResult result = attention({"--text", "the old man", "--target", "der alte Mann",
                                      "--layer", "0", "--head", "1,3", "--json", "--page", page});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(Json::parse(result.out).at("heads").size(), 3u * 2);  // of encoder, decoder and cross
  EXPECT_NE(read_file(page).find("Attention: the old man"), std::string::npos);
}

TEST_F(Attention, bad_flags_are_usage_errors_that_name_what_there_is) {
  expect_usage_error({}, "--text is missing");
  expect_usage_error({"--text", ""}, "--text is empty");
  expect_usage_error({"--text", "man", "--layer", "7"}, "--layer 7");
  expect_usage_error({"--text", "man", "--head", "9"}, "--head 9");
  expect_usage_error({"--text", "man", "--from", "man"}, "--from and --to go together");
  expect_usage_error({"--text", "man", "--from", "cat", "--to", "man"}, "no word 'cat'");
  expect_usage_error({"--text", "man", "--ids", "3"}, "--ids");
  expect_usage_error({"--text", "man", "--precision", "f8"}, "f8");
}

TEST_F(Attention, page_that_cannot_be_written_is_an_error_before_any_work) {
  const CliResult result = attention({"--text", "man", "--page", "/no/such/folder/a.html"});
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_NE(result.err.find("/no/such/folder"), std::string::npos) << result.err;
  const CliResult full = attention({"--text", "man", "--page", "/dev/full/a.html"});
  EXPECT_EQ(full.exit_code, 3) << full.err;
}

TEST_F(Attention, text_that_is_not_utf8_or_too_long_and_missing_models_are_data_errors) {
  EXPECT_EQ(attention({"--text", "caf\xE9"}).exit_code, 3);
  std::string text;
  for (int i = 0; i < 100; ++i) text += "book ";
  const CliResult result = attention({"--text", text});
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_NE(result.err.find("--truncate"), std::string::npos) << result.err;
  EXPECT_EQ(attention({"--text", text, "--target", "Buch", "--truncate"}).exit_code, 0);
  EXPECT_EQ(run_heddle({"attention", "/no/such/model", "--text", "man"}).exit_code, 3);
}

}  // namespace
}  // namespace heddle::testing
