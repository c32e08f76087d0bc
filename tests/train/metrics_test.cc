// BLEU and chrF against sacreBLEU's figures (tools/make_metric_fixtures.py) and against hand
// counts.
#include "heddle/train/metrics/metrics.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <fstream>
#include <sstream>

#include "heddle/base/error.h"
#include "heddle/base/parallel.h"
#include "heddle/base/utf8.h"
#include "heddle/train/metrics/tokenize_13a.h"
#include "tests/support/places.h"

namespace heddle::train {
namespace {

using Lines = std::vector<std::string>;

// Both sides compute in doubles from the same integers; only the last bits of exp and log differ.
constexpr double kTolerance = 1e-9;

Lines read_lines(const std::string& name) {
  std::ifstream file(std::string(testing::kFixtures) + "/metrics/" + name, std::ios::binary);
  EXPECT_TRUE(file.is_open()) << name;
  Lines lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

std::string joined(const Lines& words) {
  std::string text;
  for (const auto& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

struct Expected {
  std::string name;
  size_t references = 0;
  std::string tokenizer, letters;
  double bleu = 0, precisions[4] = {}, brevity_penalty = 0;
  int64_t hypothesis_length = 0, reference_length = 0;
  double chrf = 0;
};

std::vector<Expected> read_expected() {
  std::vector<Expected> all;
  for (const auto& line : read_lines("expected.tsv")) {
    std::istringstream in(line);
    Expected e;
    in >> e.name >> e.references >> e.tokenizer >> e.letters >> e.bleu;
    for (double& p : e.precisions) in >> p;
    in >> e.brevity_penalty >> e.hypothesis_length >> e.reference_length >> e.chrf;
    EXPECT_FALSE(in.fail()) << line;
    all.push_back(e);
  }
  return all;
}

std::vector<Lines> read_references(const Expected& e) {
  std::vector<Lines> references;
  for (size_t k = 1; k <= e.references; ++k) {
    references.push_back(read_lines(e.name + ".ref" + (k > 1 ? std::to_string(k) : "")));
  }
  return references;
}

std::string error_message(const auto& action) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::data);
    return error.what();
  }
  return "no error";
}

TEST(Bleu, every_fixture_equals_sacrebleu) {
  const auto all = read_expected();
  EXPECT_GE(all.size(), 50u);
  for (const Expected& e : all) {
    SCOPED_TRACE(e.name + " " + e.tokenizer + " " + e.letters);
    const auto score =
        corpus_bleu(read_lines(e.name + ".hyp"), read_references(e),
                    {.lowercase = e.letters == "lc", .tokenizer = bleu_tokenizer(e.tokenizer)});
    EXPECT_NEAR(score.score, e.bleu, kTolerance);
    for (int n = 0; n < 4; ++n) EXPECT_NEAR(score.precisions[n], e.precisions[n], kTolerance);
    EXPECT_NEAR(score.brevity_penalty, e.brevity_penalty, kTolerance);
    EXPECT_EQ(score.hypothesis_length, e.hypothesis_length);
    EXPECT_EQ(score.reference_length, e.reference_length);
  }
}

TEST(Chrf, every_fixture_equals_sacrebleu) {
  for (const Expected& e : read_expected()) {
    const auto score = corpus_chrf(read_lines(e.name + ".hyp"), read_references(e),
                                   {.lowercase = e.letters == "lc"});
    EXPECT_NEAR(score.score, e.chrf, kTolerance) << e.name << " " << e.letters;
  }
}

TEST(Bleu, repeated_word_is_clipped_at_its_count_in_the_reference) {
  // Papineni et al. 2002, section 2.1: "the" seven times has a unigram precision of 2/7.
  const auto score =
      corpus_bleu(Lines{"the the the the the the the"},
                  std::vector<Lines>{{"The cat is on the mat"}, {"There is a cat on the mat"}},
                  {.lowercase = true});
  EXPECT_NEAR(score.precisions[0], 100 * 2.0 / 7, kTolerance);
}

TEST(Bleu, hand_counted_corpus_gives_the_formula) {
  // 5 of 6 words, 3 of 5 pairs, 1 of 4 triples, no four (1/2 of 1/3); 6 words against 7.
  const auto score = corpus_bleu(Lines{"a b c x d e"}, Lines{"a b c d e f g"});
  const double product = 5.0 / 6 * 3 / 5 * 1 / 4 * (0.5 / 3);
  EXPECT_NEAR(score.score, 100 * std::exp(1 - 7.0 / 6) * std::pow(product, 0.25), kTolerance);
}

TEST(Bleu, one_reference_as_a_list_equals_the_plain_call) {
  const Lines hypotheses = read_lines("tricky.hyp"), references = read_lines("tricky.ref");
  EXPECT_EQ(corpus_bleu(hypotheses, references),
            corpus_bleu(hypotheses, std::vector<Lines>{references}));
  EXPECT_EQ(corpus_chrf(hypotheses, references),
            corpus_chrf(hypotheses, std::vector<Lines>{references}));
}

TEST(Bleu, signature_states_every_option) {
  const Lines line = {"a"};
  EXPECT_EQ(corpus_bleu(line, line).signature,
            "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:heddle-0.1.0");
  EXPECT_EQ(corpus_bleu(line, std::vector<Lines>{line, line},
                        {.lowercase = true, .tokenizer = BleuTokenizer::none})
                .signature,
            "nrefs:2|case:lc|eff:no|tok:none|smooth:exp|version:heddle-0.1.0");
}

TEST(Chrf, signature_states_every_option) {
  const Lines line = {"a"};
  EXPECT_EQ(corpus_chrf(line, line).signature,
            "nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no|version:heddle-0.1.0");
  EXPECT_EQ(corpus_chrf(line, line, {.lowercase = true}).signature,
            "nrefs:1|case:lc|eff:yes|nc:6|nw:0|space:no|version:heddle-0.1.0");
}

TEST(Bleu, line_counts_that_differ_are_a_data_error_with_both_counts) {
  const auto message = error_message([] { corpus_bleu(Lines{"a", "b", "c"}, Lines{"a", "b"}); });
  EXPECT_NE(message.find("3 hypotheses but 2 references"), std::string::npos) << message;
}

TEST(Bleu, corpus_without_a_line_is_a_data_error) {
  EXPECT_NE(error_message([] { corpus_bleu(Lines{}, Lines{}); }).find("no hypothesis"),
            std::string::npos);
  EXPECT_NE(
      error_message([] { corpus_chrf(Lines{"a"}, std::vector<Lines>{}); }).find("no reference"),
      std::string::npos);
}

TEST(Bleu, unknown_tokenizer_is_a_usage_error) {
  try {
    bleu_tokenizer("intl");
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage);
  }
}

TEST(Metrics, one_thread_gives_the_bits_of_four) {
  Lines hypotheses, references;
  for (int i = 0; i < 50; ++i) {
    for (const auto& line : read_lines("unicode.hyp")) hypotheses.push_back(line);
    for (const auto& line : read_lines("unicode.ref")) references.push_back(line);
  }
  const int before = num_threads();
  set_num_threads(1);
  const auto bleu = corpus_bleu(hypotheses, references);
  const auto chrf = corpus_chrf(hypotheses, references);
  set_num_threads(4);
  EXPECT_EQ(corpus_bleu(hypotheses, references), bleu);
  EXPECT_EQ(corpus_chrf(hypotheses, references), chrf);
  set_num_threads(before);
}

TEST(Metrics, text_that_is_not_utf8_is_scored_byte_by_byte) {
  const Lines broken = {"caf\xE9 \xFF\xC3"}, other = {"caf\xE8 \xFF\xC3"};
  EXPECT_NEAR(corpus_chrf(broken, broken).score, 100, kTolerance);
  EXPECT_LT(corpus_chrf(broken, other).score, 90);
  EXPECT_EQ(corpus_bleu(broken, other, {.lowercase = true}).hypothesis_length, 2);
}

TEST(Metrics, line_of_100000_words_is_scored_in_seconds) {
  std::string line;
  for (int i = 0; i < 100000; ++i) line += "word ";
  EXPECT_NEAR(corpus_bleu(Lines{line}, Lines{line}).score, 100, kTolerance);
  EXPECT_NEAR(corpus_chrf(Lines{line}, Lines{line}).score, 100, kTolerance);
}

TEST(Tokenize13a, every_fixture_equals_sacrebleu) {
  const auto lines = read_lines("tokens.in"), expected = read_lines("tokens.13a");
  ASSERT_EQ(lines.size(), expected.size());
  for (size_t i = 0; i < lines.size(); ++i) {
    EXPECT_EQ(joined(tokenize_13a(lines[i])), expected[i]) << lines[i];
  }
}

TEST(Tokenize13a, numbers_keep_their_separators) {
  EXPECT_EQ(tokenize_13a("1,000.50, 3.x"), (Lines{"1,000.50", ",", "3", ".", "x"}));
}

TEST(Tokenize13a, newline_after_a_dash_joins_and_others_separate) {
  EXPECT_EQ(tokenize_13a("fly-\nwheel and\nwheel-\n"), (Lines{"flywheel", "and", "wheel-"}));
}

TEST(Tokenize13a, entities_are_decoded_once) {
  EXPECT_EQ(tokenize_13a("&amp;lt; &amp;quot;"), (Lines{"<", "&", "quot", ";"}));
}

TEST(SplitWhitespace, separators_are_those_of_python) {
  EXPECT_EQ(split_whitespace("\u00a0a\u3000b\x1f"
                             "c\u0085\u2028d\u200be\ufeff"),
            (std::vector<std::string_view>{"a", "b", "c", "d\u200be\ufeff"}));
  EXPECT_TRUE(split_whitespace(" \t\v\f\u2009").empty());
}

TEST(LowerCase, every_fixture_equals_python) {
  const auto lines = read_lines("lower.in"), expected = read_lines("lower.out");
  ASSERT_EQ(lines.size(), expected.size());
  for (size_t i = 0; i < lines.size(); ++i) EXPECT_EQ(lower_case(lines[i]), expected[i]);
}

TEST(FirstInvalidUtf8, surrogates_overlong_and_cut_sequences_are_refused) {
  EXPECT_FALSE(first_invalid_utf8("aß猫🎉"));
  EXPECT_FALSE(first_invalid_utf8(""));
  for (const char* text : {"\xED\xA0\x80", "\xC0\xAF", "\xE2\x82", "\xF4\x90\x80\x80", "\x80"}) {
    EXPECT_TRUE(first_invalid_utf8(text));
  }
}

}  // namespace
}  // namespace heddle::train
