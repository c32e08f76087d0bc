// heddle score at the command line: files in, two lines or one of JSON out, and bad input.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>

#include "heddle/base/json/json.h"
#include "tests/support/cli_runner.h"

namespace heddle::testing {
namespace {

const std::string kMetrics = std::string(kFixtures) + "/metrics/";

// heddle score on the fixtures NAME.hyp and NAME.ref.
CliResult score_fixture(const std::string& name, const std::vector<std::string>& flags) {
  std::vector<std::string> words = {"score", "--hyp", kMetrics + name + ".hyp", "--ref",
                                    kMetrics + name + ".ref"};
  words.insert(words.end(), flags.begin(), flags.end());
  return run_heddle(words);
}

CliResult score_files(const std::filesystem::path& hypothesis,
                      const std::filesystem::path& reference) {
  return run_heddle({"score", "--json", "--hyp", hypothesis.string(), "--ref", reference.string()});
}

void expect_data_error(const CliResult& result, const std::string& part) {
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_EQ(result.out, "");
  EXPECT_NE(result.err.find(part), std::string::npos) << result.err;
}

TEST(Score, json_is_one_line_with_the_figures_of_sacrebleu) {
  const CliResult result = score_fixture("plain", {"--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out.find('\n'), result.out.size() - 1);
  const Json json = Json::parse(result.out);
  EXPECT_NEAR(json.get_double("bleu"), 48.69246413621232, 1e-9);  // expected.tsv
  EXPECT_NEAR(json.get_double("chrf"), 72.82491913286073, 1e-9);
  EXPECT_EQ(json.get_string("signature"),
            "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:heddle-0.1.0");
  EXPECT_EQ(json.get_string("chrf_signature"),
            "nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no|version:heddle-0.1.0");
  ASSERT_EQ(json.at("precisions").size(), 4u);
  EXPECT_NEAR(json.at("precisions").as_array()[3].as_double(), 25.925925925925927, 1e-9);
  EXPECT_NEAR(json.get_double("bp"), 0.9746849137081522, 1e-12);
  EXPECT_EQ(json.get_int("hyp_len"), 39);
  EXPECT_EQ(json.get_int("ref_len"), 40);
}

TEST(Score, text_is_a_line_for_each_metric) {
  const CliResult result = score_fixture("plain", {});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(std::count(result.out.begin(), result.out.end(), '\n'), 2);
  EXPECT_EQ(result.out.rfind("BLEU  48.69 ", 0), 0u) << result.out;
  EXPECT_NE(result.out.find("\nchrF2 72.82 "), std::string::npos) << result.out;
}

TEST(Score, lowercase_and_tokenizer_reach_the_metric) {
  const CliResult result =
      score_fixture("unicode", {"--lowercase", "--tokenize", "none", "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const Json json = Json::parse(result.out);
  EXPECT_NEAR(json.get_double("bleu"), 43.06757062916458, 1e-9);  // expected.tsv
  EXPECT_EQ(json.get_string("signature").find("nrefs:1|case:lc|eff:no|tok:none|"), 0u);
  EXPECT_EQ(json.get_string("chrf_signature").find("nrefs:1|case:lc|"), 0u);
}

TEST(Score, two_references_are_used_together) {
  const CliResult result =
      score_fixture("two_references", {"--ref", kMetrics + "two_references.ref2", "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const Json json = Json::parse(result.out);
  EXPECT_NEAR(json.get_double("bleu"), 43.4839417070509, 1e-9);  // expected.tsv
  EXPECT_EQ(json.get_string("signature").find("nrefs:2|"), 0u);
}

TEST(Score, gzip_gives_what_the_plain_file_gives) {
  const CliResult packed = run_command({"gzip", "-c", kMetrics + "plain.hyp"});
  ASSERT_EQ(packed.exit_code, 0);
  const TempDir folder;
  write_file(folder / "hyp.gz", packed.out);
  const CliResult result = score_files(folder / "hyp.gz", kMetrics + "plain.ref");
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out, score_fixture("plain", {"--json"}).out);
}

TEST(Score, hypotheses_may_come_from_standard_input) {
  CliOptions options;
  options.input = read_file(kMetrics + "plain.hyp");
  const CliResult result =
      run_heddle({"score", "--json", "--hyp", "-", "--ref", kMetrics + "plain.ref"}, options);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out, score_fixture("plain", {"--json"}).out);
}

TEST(Score, line_counts_that_differ_are_a_data_error_with_both_counts) {
  const TempDir folder;
  write_file(folder / "hyp", "a\nb\nc\n");
  write_file(folder / "ref", "a\nb");
  const CliResult result = score_files(folder / "hyp", folder / "ref");
  expect_data_error(result, "hyp has 3 lines but");
  EXPECT_NE(result.err.find("ref has 2"), std::string::npos) << result.err;
}

TEST(Score, line_that_is_not_utf8_is_a_data_error_with_file_and_line) {
  const TempDir folder;
  write_file(folder / "good", "a\nb\n");
  write_file(folder / "bad", "a\ncaf\xE9\n");
  expect_data_error(score_files(folder / "good", folder / "bad"), "bad: line 2 is not UTF-8");
  expect_data_error(score_files(folder / "bad", folder / "good"), "bad: line 2 is not UTF-8");
}

TEST(Score, empty_file_is_a_data_error_that_names_it) {
  const TempDir folder;
  write_file(folder / "good", "a\n");
  write_file(folder / "empty", "");
  expect_data_error(score_files(folder / "good", folder / "empty"), "empty: the file is empty");
  expect_data_error(score_files(folder / "empty", folder / "good"), "empty: the file is empty");
}

TEST(Score, missing_file_is_a_data_error_that_names_it) {
  expect_data_error(score_files("/no/such/file", kMetrics + "plain.ref"), "/no/such/file");
}

TEST(Score, source_splits_the_figures_by_its_words) {
  const CliResult all = run_heddle({"score", "--json", "--hyp", kMetrics + "paired.far", "--ref",
                                    kMetrics + "paired.ref", "--src", kMetrics + "paired.ref"});
  ASSERT_EQ(all.exit_code, 0) << all.err;
  const Json json = Json::parse(all.out);
  const auto& classes = json.at("by_length").as_array();
  ASSERT_EQ(classes.size(), 4u);
  const TempDir folder;
  std::string hypotheses, references;  // the second class by hand: 11 to 15 words
  std::istringstream hyp(read_file(kMetrics + "paired.far")),
      ref(read_file(kMetrics + "paired.ref"));
  int64_t lines = 0;
  for (std::string h, r; std::getline(hyp, h) && std::getline(ref, r);) {
    const auto words = 1 + std::count(r.begin(), r.end(), ' ');
    if (words < 11 || words > 15) continue;
    hypotheses += h + "\n";
    references += r + "\n";
    ++lines;
  }
  write_file(folder / "hyp", hypotheses);
  write_file(folder / "ref", references);
  const Json part = Json::parse(score_files(folder / "hyp", folder / "ref").out);
  EXPECT_EQ(classes[1].get_string("words"), "11 to 15");
  EXPECT_EQ(classes[1].get_int("lines"), lines);
  EXPECT_EQ(classes[1].get_double("bleu"), part.get_double("bleu"));
  EXPECT_EQ(classes[1].get_double("chrf"), part.get_double("chrf"));
}

TEST(Score, another_system_is_compared_by_the_bootstrap) {
  const CliResult result =
      run_heddle({"score", "--hyp", kMetrics + "paired.far", "--ref", kMetrics + "paired.ref",
                  "--against", kMetrics + "paired.base"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.out.find("p = 0.0010"), std::string::npos) << result.out;
  expect_data_error(run_heddle({"score", "--hyp", kMetrics + "paired.far", "--ref",
                                kMetrics + "paired.ref", "--against", kMetrics + "plain.hyp"}),
                    "plain.hyp has 4");
  EXPECT_EQ(run_heddle({"score", "--hyp", kMetrics + "paired.far", "--ref", kMetrics + "paired.ref",
                        "--against", kMetrics + "paired.base", "--samples", "0"})
                .exit_code,
            2);
}

TEST(Score, several_systems_are_lines_of_one_table_and_an_array_of_json) {
  const std::vector<std::string> words = {"score",
                                          "--hyp",
                                          kMetrics + "paired.base",
                                          "--ref",
                                          kMetrics + "paired.ref",
                                          "--against",
                                          kMetrics + "paired.near",
                                          "--against",
                                          kMetrics + "paired.far"};
  const CliResult text = run_heddle(words);
  ASSERT_EQ(text.exit_code, 0) << text.err;
  for (const char* name : {"paired.base  ", "paired.near  ", "paired.far  "}) {
    EXPECT_NE(text.out.find(name), std::string::npos) << name << text.out;
  }
  std::vector<std::string> as_json = words;
  as_json.push_back("--json");
  const Json all = Json::parse(run_heddle(as_json).out).at("bootstrap");
  const auto& systems = all.at("against").as_array();
  ASSERT_EQ(systems.size(), 2u);
  EXPECT_EQ(systems[0].get_string("file"), kMetrics + "paired.near");
  // paired.tsv
  std::ifstream expected(kMetrics + "paired.tsv");
  int seen = 0;
  std::string name, metric;
  for (double s, mean, half, b, b_mean, b_half, p;
       expected >> name >> metric >> s >> mean >> half >> b >> b_mean >> b_half >> p; ++seen) {
    SCOPED_TRACE(name + metric);
    const char* key = metric == "BLEU" ? "bleu" : "chrf";
    const Json& one = systems[name == "near" ? 0 : 1].at(key);
    EXPECT_NEAR(one.get_double("score"), s, 1e-9);
    EXPECT_NEAR(one.get_double("half_width"), half, 1e-4);
    EXPECT_DOUBLE_EQ(one.get_double("p"), p);
    EXPECT_NEAR(all.at(key).get_double("mean"), b_mean, 1e-4);
  }
  EXPECT_EQ(seen, 4);
}

TEST(Score, confidence_is_the_mean_and_interval_of_one_system) {
  const std::vector<std::string> words = {"score", "--hyp", kMetrics + "paired.base", "--ref",
                                          kMetrics + "paired.ref"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), words.begin(), words.end());
    return run_heddle(more);
  };
  const Json whole = Json::parse(with({"--confidence", "--json"}).out);
  // As sacreBLEU's --confidence has it.
  EXPECT_TRUE(whole.get_string("signature").starts_with("nrefs:1|bs:1000|seed:12345|case:mixed|"));
  EXPECT_TRUE(whole.get_string("chrf_signature").starts_with("nrefs:1|bs:1000|seed:12345|"));
  const Json& all = whole.at("bootstrap");
  EXPECT_EQ(all.get_int("samples"), 1000);
  std::ifstream expected(kMetrics + "paired.tsv");
  std::string name, metric;
  double s = 0, mean = 0, half = 0, b = 0, b_mean = 0, b_half = 0;
  expected >> name >> metric >> s >> mean >> half >> b >> b_mean >> b_half;
  ASSERT_EQ(metric, "BLEU");
  EXPECT_NEAR(all.at("bleu").get_double("mean"), b_mean, 1e-4);
  EXPECT_NEAR(all.at("bleu").get_double("half_width"), b_half, 1e-4);
  const CliResult text = with({"--confidence"});
  EXPECT_NE(text.out.find(fmt::format("({:.2f} ± {:.2f})", b_mean, b_half)), std::string::npos)
      << text.out;
  EXPECT_EQ(text.out.find("p ="), std::string::npos) << text.out;
  EXPECT_EQ(with({"--samples", "10"}).exit_code, 2);
  EXPECT_EQ(with({"--confidence", "--samples", "0"}).exit_code, 2);
}

TEST(Score, unknown_tokenizer_is_a_usage_error) {
  const CliResult result = score_fixture("plain", {"--tokenize", "intl"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_NE(result.err.find("intl"), std::string::npos) << result.err;
}

TEST(Score, missing_reference_flag_is_a_usage_error) {
  const CliResult result = run_heddle({"score", "--hyp", kMetrics + "plain.hyp"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_NE(result.err.find("--ref"), std::string::npos) << result.err;
}

}  // namespace
}  // namespace heddle::testing
