// The recipe "agreement": trained, it translates what it never met, and its attention shows how.
#include <gtest/gtest.h>

#include <cstdio>

#include "corpora/agreement.h"
#include "tests/support/cli_runner.h"

namespace heddle::testing {
namespace {

std::string run_in(const TempDir& dir, std::vector<std::string> words,
                   const std::string& input = {}) {
  CliOptions options;
  options.input = input;
  options.folder = dir.path();
  options.timeout_seconds = 3600;
  const CliResult r = run_heddle(std::move(words), options);
  EXPECT_EQ(r.exit_code, 0) << r.err;
  return r.out;
}

TEST(AgreementRecipe, pronouns_and_order_come_out_and_attention_shows_both) {
  const TempDir dir;
  run_in(dir, {"train", "--recipe", "agreement", "--out", "run"});
  std::string sources, targets;
  for (const Phrase& p : agreement_examples()) {
    sources += p.source + "\n";
    targets += p.target + "\n";
  }
  EXPECT_EQ(run_in(dir, {"translate", "run"}, sources), targets);

  // Of all words the best head moves "it" to "animal".
  const std::string heads =
      run_in(dir, {"attention", "run", "--text", agreement_examples()[0].source, "--from", "it",
                   "--to", "animal"});
  const size_t first = heads.find("encoder, ");
  ASSERT_NE(first, std::string::npos) << heads;
  const std::string row = heads.substr(first, heads.find('\n', first) - first);
  int layer = -1, head = -1, words_above = -1;
  double weight = 0;
  ASSERT_EQ(std::sscanf(row.c_str(), "encoder, layer %d, head %d %lf %d", &layer, &head, &weight,
                        &words_above),
            4)
      << row;
  EXPECT_GT(weight, 0.1);
  EXPECT_EQ(words_above, 0) << row;

  // European 4, Economic 5, Area 6 become zone 3, économique 4, européenne 5.
  const std::string aligned =
      run_in(dir, {"translate", "run", "--alignment"}, agreement_examples()[1].source + "\n");
  for (const char* link : {" 4-5", " 5-4", " 6-3"}) {
    EXPECT_NE(aligned.find(link), std::string::npos) << link << " in " << aligned;
  }
}

}  // namespace
}  // namespace heddle::testing
