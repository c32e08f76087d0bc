// What pages of heddle eval hold: bounds, and parts of texts.
#include "heddle/inspect/eval_pages.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

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
