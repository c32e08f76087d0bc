// Commands that look into translators which are told languages by tokens.
#include <gtest/gtest.h>

#include "heddle/base/json/json.h"
#include "tests/base/temporary.h"
#include "tests/support/cli_runner.h"
#include "tests/support/places.h"

namespace heddle::testing {
namespace {

const std::string kSource = "the boy reads a book", kTarget = "tea in the garden";

class ToldLanguages : public ::testing::Test {
 protected:
  static std::string model(const std::string& family) {
    return std::string(kFixtures) + "/seq2seq/" + family;
  }
  TemporaryFolder folder_;
};

TEST_F(ToldLanguages, their_tokens_stand_where_the_model_reads_them) {
  const auto sides = [&](const std::string& family, const std::string& source,
                         const std::string& target) {
    const CliResult result =
        run_heddle({"attention", model(family), "--text", kSource, "--target", kTarget,
                    "--source-language", source, "--target-language", target, "--json"});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return Json::parse(result.out).at("sides");
  };
  const Json m2m = sides("m2m_100", "fr", "de"), mbart = sides("mbart", "fr_XX", "ar_AR");
  const auto tokens = [](const Json& all, size_t side) {
    return all.as_array()[side].at("tokens").as_strings("tokens");
  };
  EXPECT_EQ(tokens(m2m, 0).front(), "__fr__");
  EXPECT_EQ(tokens(m2m, 0).back(), "(end)");
  EXPECT_EQ(tokens(m2m, 1)[1], "__de__");
  EXPECT_EQ(tokens(m2m, 2)[0], "__de__");
  EXPECT_EQ(tokens(mbart, 0).back(), "fr_XX");
  EXPECT_EQ(tokens(mbart, 1)[1], "ar_AR");
}

TEST_F(ToldLanguages, missing_or_needless_ones_are_refused_by_name) {
  folder_.write("pairs", "the boy ||| a book\n");
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{"attention", model("m2m_100"), "--text", "a"}, "say which with --target-language"},
      {{"explain", model("mbart"), "--text", "a"}, "say which with --target-language"},
      {{"align", model("m2m_100"), "--pairs", folder_ / "pairs"},
       "say which with --target-language"},
      {{"align", model("bart"), "--pairs", folder_ / "pairs", "--source-language", "en"},
       "marks no languages"},
      {{"align", "--statistical", "--pairs", folder_ / "pairs", "--source-language", "en"},
       "asks for no languages"}};
  for (const auto& [words, part] : cases) {
    const CliResult result = run_heddle(words);
    EXPECT_EQ(result.exit_code, 2) << words[0] << result.err;
    EXPECT_NE(result.err.find(part), std::string::npos) << words[0] << ": " << result.err;
  }
  const CliResult aligned = run_heddle({"align", model("m2m_100"), "--pairs", folder_ / "pairs",
                                        "--source-language", "en", "--target-language", "de"});
  EXPECT_EQ(aligned.exit_code, 0) << aligned.err;
  EXPECT_NE(aligned.out.find("-0 "), std::string::npos) << aligned.out;  // of both words
}

}  // namespace
}  // namespace heddle::testing
