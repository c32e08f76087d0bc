// Drafted tokens at the command line: the same texts, and when they are drafted.
#include "tests/cli/language_model.h"

namespace heddle::testing {
namespace {

void write_drafting(const std::string& folder) {
  write_language_model(folder, R"({"eos_token_id": [3, 9], "prompt_lookup_num_tokens": 5})");
}

class Speculation : public FolderFixture<write_drafting> {
 protected:
  CliResult generate(std::vector<std::string> flags, const std::string& input) {
    flags.insert(flags.begin(), {"generate", model()});
    CliResult result = run_heddle(flags, with_input(input));
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return result;
  }
};

TEST_F(Speculation, a_thousand_prompts_have_the_same_texts_to_the_letter) {
  const std::vector<std::string> words = {"the", "old", "man",  "reads", "two",     "books",
                                          "a",   "dog", "sees", "ein",   "Fahrrad."};
  std::string prompts;
  uint32_t random = 5;
  for (int i = 0; i < 1000; ++i) {
    const int count = 1 + i % 7;
    for (int k = 0; k < count; ++k) {
      random = random * 1664525 + 1013904223;
      prompts += (k == 0 ? "" : " ") + words[(random >> 16) % words.size()];
    }
    prompts += "\n";
  }
  for (const std::vector<std::string>& more :
       std::vector<std::vector<std::string>>{{}, {"--sample", "--seed", "4"}}) {
    std::vector<std::string> flags = {"--max-new-tokens", "24"};
    flags.insert(flags.end(), more.begin(), more.end());
    const CliResult drafted = generate(flags, prompts);
    flags.insert(flags.end(), {"--speculate", "0"});
    const CliResult plain = generate(flags, prompts);
    EXPECT_NE(drafted.err.find(" accepted ("), std::string::npos) << drafted.err;
    EXPECT_EQ(plain.err.find("drafted"), std::string::npos);
    EXPECT_GT(plain.out.size(), 10'000u);
    EXPECT_EQ(drafted.out, plain.out);
  }
}

TEST_F(Speculation, a_beam_that_is_asked_for_takes_the_place_of_the_models_drafts) {
  const CliResult beam = generate({"--beam", "3"}, "the old\n");
  EXPECT_EQ(beam.err.find("drafted"), std::string::npos) << beam.err;
  EXPECT_EQ(beam.out, generate({"--beam", "3", "--speculate", "0"}, "the old\n").out);
  const CliResult both =
      run_heddle({"generate", model(), "-p", "the", "--beam", "3", "--speculate", "5"});
  EXPECT_EQ(both.exit_code, 2);
  EXPECT_NE(both.err.find("--speculate is 5"), std::string::npos) << both.err;
}

}  // namespace
}  // namespace heddle::testing
