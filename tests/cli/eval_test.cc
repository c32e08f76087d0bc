// heddle eval at the command line: its figures are those of translate and score.
#include <gtest/gtest.h>

#include <cmath>

#include "heddle/base/json/json.h"
#include "tests/cli/model_fixture.h"
#include "tests/cli/page_data.h"

namespace heddle::testing {
namespace {

class Eval : public ModelFixture {
 protected:
  TempDir folder;
  std::string source = (folder / "test.en").string(), reference = (folder / "test.de").string();

  Eval() {
    write_file(source, "the old man reads two books!\na small dog\n\nmy sister\n");
    write_file(reference, "der alte Mann liest\ndie Straße\n\neine kleine Katze sieht nichts\n");
  }
  CliResult eval(std::vector<std::string> flags = {}) {
    flags.insert(flags.begin(), {"eval", model(), "--src", source, "--ref", reference});
    return run_heddle(flags);
  }
  void expect_data_error(const CliResult& result, const std::string& part) {
    EXPECT_EQ(result.exit_code, 3);
    EXPECT_EQ(result.out, "");
    EXPECT_NE(result.err.find(part), std::string::npos) << result.err;
  }
};

TEST_F(Eval, figures_are_those_of_translate_and_score) {
  const std::string out = (folder / "hyp").string();
  const CliResult result = eval({"--json", "--beam", "2", "--lowercase", "--output", out});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  ASSERT_EQ(split_lines(result.out).size(), 1u);
  const CliResult translated =
      run_heddle({"translate", model(), "--beam", "2"}, with_input(read_file(source)));
  EXPECT_EQ(read_file(out), translated.out);
  const Json score = Json::parse(
      run_heddle({"score", "--hyp", out, "--ref", reference, "--lowercase", "--json"}).out);
  const Json json = Json::parse(result.out);
  for (const char* key : {"bleu", "chrf", "signature", "chrf_signature"}) {
    EXPECT_EQ(json.at(key), score.at(key)) << key;
  }
}

TEST_F(Eval, page_has_each_line_with_its_own_chrf) {
  const std::string out = (folder / "hyp").string(), page = (folder / "page.html").string();
  const CliResult result = eval({"--output", out, "--page", page});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out, eval().out);
  EXPECT_EQ(result.err, "eval: a page in " + page + "; open it in a browser\n");
  const Json data = page_data(page);
  EXPECT_EQ(data.get_string("summary") + "\n", result.out);
  const Json::Array& lines = data.at("lines").as_array();
  ASSERT_EQ(lines.size(), 4u);
  const auto translations = split_lines(read_file(out)),
             references = split_lines(read_file(reference)),
             sources = split_lines(read_file(source));
  const std::string one = (folder / "one").string(), other = (folder / "other").string();
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(lines[i].get_string("source"), sources[i]);
    EXPECT_EQ(lines[i].get_string("reference"), references[i]);
    EXPECT_EQ(lines[i].get_string("translation"), translations[i]);
    write_file(one, translations[i] + "\n");
    write_file(other, references[i] + "\n");
    const CliResult score = run_heddle({"score", "--hyp", one, "--ref", other, "--json"});
    EXPECT_NEAR(lines[i].get_double("chrf"), Json::parse(score.out).get_double("chrf"), 1e-5);
  }
  EXPECT_EQ(eval({"--page", "/no/such/page.html"}).exit_code, 3);
}

TEST_F(Eval, perplexities_follow_from_the_likelihood_and_the_counts) {
  const Json json = Json::parse(eval({"--json", "--precision", "f32"}).out);
  const double nll = json.get_double("nll");
  EXPECT_EQ(json.get_int("words"), 11);
  EXPECT_EQ(json.get_int("lines"), 4);
  int64_t tokens = 0;
  for (const std::string& line : split_lines(read_file(reference))) {
    tokens += static_cast<int64_t>(shared_tokenizer().encode(line).size()) + 1;
  }
  EXPECT_EQ(json.get_int("tokens"), tokens);
  EXPECT_NEAR(json.get_double("ppl"), std::exp(nll / static_cast<double>(tokens)), 1e-9 * nll);
  EXPECT_NEAR(std::log(json.get_double("ppl_word")), nll / 11, 1e-9 * nll);
  EXPECT_GT(json.get_double("ppl"), 1);
}

TEST_F(Eval, batches_change_the_likelihood_by_rounding_only) {
  const auto nll = [&](const char* tokens) {
    return Json::parse(eval({"--json", "--batch-tokens", tokens}).out).get_double("nll");
  };
  EXPECT_NEAR(nll("1"), nll("4096"), 1e-6 * nll("1"));
}

TEST_F(Eval, text_names_both_metrics_and_the_perplexity) {
  const CliResult result = eval();
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto lines = split_lines(result.out);
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[0].rfind("BLEU ", 0), 0u);
  EXPECT_EQ(lines[1].rfind("chrF2 ", 0), 0u);
  EXPECT_EQ(lines[2].rfind("perplexity ", 0), 0u);
}

TEST_F(Eval, line_counts_that_differ_are_a_data_error_with_both_counts) {
  write_file(reference, "a\nb\n");
  expect_data_error(eval(), "has 4 lines but");
}

TEST_F(Eval, missing_empty_or_ill_formed_files_are_data_errors) {
  write_file(reference, "");
  expect_data_error(eval(), "is empty");
  write_file(reference, "a\ncaf\xE9\nc\nd\n");
  expect_data_error(eval(), "test.de: line 2: not UTF-8");
  reference = "/no/such/file";
  expect_data_error(eval(), "/no/such/file");
}

TEST_F(Eval, flags_of_language_models_are_refused) {
  const CliResult result = eval({"--stride", "2"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_NE(result.err.find("--stride is a flag of language models"), std::string::npos)
      << result.err;
}

TEST_F(Eval, beam_0_is_a_usage_error) { EXPECT_EQ(eval({"--beam", "0"}).exit_code, 2); }

}  // namespace
}  // namespace heddle::testing
