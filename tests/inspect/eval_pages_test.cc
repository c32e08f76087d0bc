// What pages of heddle eval hold: bounds, and parts of texts.
#include "heddle/inspect/pages/text_pages.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>

#include "heddle/text/strings/strings.h"
#include "tests/base/temporary.h"
#include "tests/infer/small_models.h"

namespace heddle::inspect {
namespace {

const Evaluation kEvaluation = {"model", "file", "perplexity 2"};

TEST(PartOfText, parts_laid_end_to_end_are_the_text) {
  const Tokenizer& tokenizer = testing::shared_tokenizer();
  const auto ids = tokenizer.encode("the old man");
  ASSERT_LE(ids.size(), 11u);  // ten are shown around one
  for (size_t i = 0; i < ids.size(); ++i) {
    const PartOfText text = part_of_text(tokenizer, ids, i, i + 1);
    EXPECT_EQ(text.before + text.part + text.after, "the old man");
  }
  const auto accent = tokenizer.encode("é");  // not in the vocabulary: bytes
  ASSERT_GE(accent.size(), 2u);
  const size_t last = accent.size() - 1;
  EXPECT_EQ(part_of_text(tokenizer, accent, last - 1, last).part, "");
  EXPECT_EQ(part_of_text(tokenizer, accent, last, last + 1).part, "é");
}

class WordPieceParts : public ::testing::Test {
 protected:
  static Tokenizer make() {
    const TemporaryFolder folder;
    folder.write("tokenizer_config.json", R"({"clean_up_tokenization_spaces": true})");
    return Tokenizer::load(folder.write(
        "vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nit\n'\ns\nmine\n.\nsa\n##lt\n##y\n"));
  }
  const Tokenizer tokenizer_ = make();
};

// The tokenizer takes away the spaces around what was split off.
TEST_F(WordPieceParts, contractions_and_punctuation_stand_as_in_the_text) {
  const auto ids = tokenizer_.encode("it's mine.");
  const std::vector<std::string> parts = {"it", "'", "s", " mine", "."};
  ASSERT_EQ(ids.size(), parts.size());
  for (size_t i = 0; i < ids.size(); ++i) {
    const PartOfText text = part_of_text(tokenizer_, ids, i, i + 1);
    EXPECT_EQ(text.part, parts[i]);
    EXPECT_EQ(text.before + text.part + text.after, "it's mine.");
  }
}

TEST_F(WordPieceParts, text_around_begins_and_ends_with_whole_words) {
  std::string whole;
  for (int i = 0; i < 30; ++i) whole += i % 2 == 0 ? "salty " : "it's ";
  const auto ids = tokenizer_.encode(whole);
  const std::set<std::string> known = {"salty", "it's", "it'", "it", "'s", "s"};
  for (size_t i = 0; i < ids.size(); ++i) {
    const PartOfText text = part_of_text(tokenizer_, ids, i, i + 1);
    const std::string all = text.before + text.part + text.after;
    for (const std::string& word : split_at_spaces(all)) EXPECT_TRUE(known.contains(word)) << all;
    EXPECT_LT(all.size(), 80u) << "about ten ids before and behind";
  }
}

TEST(PredictionPage, first_tokens_are_held_and_an_impossible_one_has_no_number) {
  const Tokenizer& tokenizer = testing::shared_tokenizer();
  const std::vector<int32_t> ids(20100, tokenizer.encode("the").at(0));
  std::vector<PredictedToken> tokens(20050, {.log_p = -0.5f, .rank = 2, .likeliest = ids[0]});
  tokens[1].log_p = -std::numeric_limits<float>::infinity();
  const Json data = prediction_page(kEvaluation, tokenizer, ids, tokens, 312).data;
  EXPECT_EQ(data.get_int("count"), 20099);
  EXPECT_EQ(data.at("texts").size(), 20001u);
  EXPECT_EQ(data.at("loss").size(), 20000u);
  EXPECT_EQ(data.at("loss").as_array()[0].as_double(), 0.5);
  EXPECT_TRUE(data.at("loss").as_array()[1].is_null());
  EXPECT_EQ(data.at("tokens").size(), 1u);
  EXPECT_EQ(data.get_string("summary"), "perplexity 2");
}

TEST(ConfusionPage, answers_are_counted_by_cell_and_the_first_wrong_are_held) {
  const std::vector<int32_t> truths = {0, 1, 1, 0}, answers = {0, 0, 0, 0};
  const std::vector<AnsweredQuestion> wrong(
      2500, {{"", "text", ""}, 1, 0, std::exp(-1.0), 1 - std::exp(-1.0)});
  const Json data =
      confusion_page(kEvaluation, {"a", "b", "c"}, "text", truths, answers, wrong).data;
  const Json expected = Json::Array{Json::Array{0, 0, 2}, Json::Array{1, 0, 2}};
  EXPECT_EQ(data.at("cells"), expected);
  ASSERT_EQ(data.at("wrong").size(), 2000u);
  EXPECT_EQ(data.at("wrong").as_array()[0].get_double("truth_p"), 0.36788);
}

}  // namespace
}  // namespace heddle::inspect
