// heddle eval --text at the command line: perplexity of a text, and bad input.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/cli/language_model.h"

namespace heddle::testing {
namespace {

class EvalText : public LanguageModelFixture {
 protected:
  TempDir folder;
  const std::string text = (folder / "text").string();

  CliResult eval(std::vector<std::string> flags = {}) {
    flags.insert(flags.begin(), {"eval", model(), "--text", text});
    return run_heddle(flags);
  }
};

TEST_F(EvalText, figures_fit_each_other_and_count_the_text) {
  std::string content;
  for (const std::string& line : small_corpus()) content += line + "\n";
  content.resize(1200);
  write_file(text, content + "é");
  const CliResult result = eval({"--json", "--context", "32", "--stride", "8"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const Json json = Json::parse(result.out);
  const double nll = json.get_double("nll");
  EXPECT_EQ(json.get_int("bytes"), 1202);
  EXPECT_EQ(json.get_int("characters"),
            static_cast<int64_t>(1201 - std::count_if(content.begin(), content.end(),
                                                      [](char c) { return (c & 0xC0) == 0x80; })));
  EXPECT_EQ(json.get_int("tokens"),
            static_cast<int64_t>(shared_tokenizer().encode(content + "é").size()) - 1);
  EXPECT_NEAR(json.get_double("ppl"), std::exp(nll / json.get_double("tokens")),
              1e-6 * json.get_double("ppl"));
  EXPECT_NEAR(json.get_double("bits_per_byte"), nll / std::log(2.0) / 1202, 1e-9);
  EXPECT_GE(json.get_double("accuracy"), 0);
  EXPECT_EQ(eval({"--json", "--context", "32", "--stride", "8", "--batch-tokens", "1"}).out,
            result.out);
  const CliResult plain = eval();
  EXPECT_NE(plain.out.find("context 40, stride 20"), std::string::npos) << plain.out;
}

TEST_F(EvalText, texts_and_windows_that_make_no_sense_are_refused) {
  const auto refused = [&](int exit_code, const std::string& part,
                           const std::vector<std::string>& flags) {
    const CliResult result = eval(flags);
    EXPECT_EQ(result.exit_code, exit_code) << result.err;
    EXPECT_EQ(result.out, "");
    EXPECT_NE(result.err.find(part), std::string::npos) << result.err;
  };
  refused(3, "text", {});  // no such file
  write_file(text, "");
  refused(3, "0 tokens", {});
  write_file(text, "the \xff");
  refused(3, "not UTF-8", {});
  write_file(text, "the old man reads");
  refused(2, "--context is 41", {"--context", "41"});
  refused(2, "--context is 1", {"--context", "1"});
  refused(2, "--stride is 40", {"--stride", "40"});
  refused(2, "--text is for language models", {"--src", text});
  EXPECT_EQ(run_heddle({"eval", model()}).exit_code, 2);
  const TempDir other;
  const std::string translator = (other / "translator").string();
  write_small_model(translator);
  EXPECT_EQ(run_heddle({"eval", translator}).exit_code, 2);
  EXPECT_EQ(run_heddle({"eval", translator, "--text", text}).exit_code, 3);
}

}  // namespace
}  // namespace heddle::testing
