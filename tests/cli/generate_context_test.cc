// heddle generate where texts reach beyond what the model sees at once.
#include <gtest/gtest.h>

#include "tests/cli/generate_command.h"

namespace heddle::testing {
namespace {

using GenerateContext = GenerateCommand;

TEST_F(GenerateContext, prompt_beyond_the_context_is_refused_with_the_numbers_or_cut) {
  std::string text;
  for (int i = 0; i < 41; ++i) text += "the ";
  const auto tokens = static_cast<int64_t>(shared_tokenizer().encode(text).size());
  ASSERT_GT(tokens, 40);
  refused(3, fmt::format("prompt 2 has {} tokens; the model takes 40 at most", tokens),
          {"--prompt", "old", "--prompt", text});
  const CliResult cut =
      generate({"--prompt", text, "--truncate", "--max-new-tokens", "8", "--json"});
  ASSERT_EQ(cut.exit_code, 0) << cut.err;
  EXPECT_EQ(Json::parse(cut.out).get_int("prompt_tokens"), 32);
  EXPECT_NE(cut.err.find("1 prompt was cut"), std::string::npos) << cut.err;
  const Json one =
      objects({"--prompt", text, "--truncate", "--context", "1", "--max-new-tokens", "3"})[0];
  EXPECT_EQ(one.get_int("prompt_tokens"), 1);
  EXPECT_EQ(one.at("ids").size(), 3U);
}

TEST_F(GenerateContext, text_beyond_the_context_goes_on_or_says_why_it_ends) {
  const std::vector<std::string> flags = {"--ids", "20,30,40",         "--max-new-tokens",
                                          "90",    "--min-new-tokens", "90"};
  const Json slid = objects(flags)[0];
  EXPECT_EQ(slid.at("ids").size(), 90u);
  EXPECT_EQ(slid.get_string("finish_reason"), "length");
  const CliResult plain = generate(flags);
  EXPECT_NE(plain.err.find("1 text outgrew the 40 tokens that the model sees at once; there each "
                           "token was chosen from the last 20 to 40"),
            std::string::npos)
      << plain.err;
  std::vector<std::string> short_ones = flags, ending = flags;
  short_ones.insert(short_ones.end(), {"--context", "10"});
  EXPECT_EQ(objects(short_ones)[0].at("ids").size(), 90u);
  ending.push_back("--no-slide");
  const Json ended = objects(ending)[0];
  EXPECT_EQ(ended.at("ids").size(), 38u);
  EXPECT_EQ(ended.get_string("finish_reason"), "context");
  EXPECT_EQ(generate({"--ids", "20,30,40", "--max-new-tokens", "38"}).err, "");
}

}  // namespace
}  // namespace heddle::testing
