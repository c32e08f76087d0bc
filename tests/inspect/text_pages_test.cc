// What pages of texts hold: parts around masks, cosine similarity, bounds.
#include "heddle/inspect/pages/text_pages.h"

#include <gtest/gtest.h>

#include "heddle/base/utf8.h"

namespace heddle::inspect {
namespace {

const Json& first(const TextPage& page) { return page.page().data.at("texts").as_array()[0]; }

TEST(FillPage, masks_are_found_in_either_spelling) {
  FillPage page("model", "<mask>");
  page.add("a <mask>, [MASK]", {{{7, "b", 0.5, ""}}, {{8, "", 0.25, ""}}});
  EXPECT_EQ(first(page).at("parts").as_strings(), (std::vector<std::string>{"a ", ", ", ""}));
  const Json::Array& masks = first(page).at("masks").as_array();
  EXPECT_EQ(masks[0], Json(Json::Array{Json(Json::Array{"b", 0.5})}));
  EXPECT_EQ(masks[1], Json(Json::Array{Json(Json::Array{"id 8", 0.25})}));  // it has no text
}

TEST(FillPage, candidates_beyond_fifty_are_left_out) {
  FillPage page("model", "[MASK]");
  page.add("[MASK]", {std::vector<Fill>(80, Fill{1, "a", 0.01, "a"})});
  EXPECT_EQ(first(page).at("masks").as_array()[0].size(), 50u);
}

TEST(ClassPage, values_keep_their_sign_and_long_texts_end_at_a_character) {
  ClassPage page("model", {"a", "b", "c"}, ClassScale::none, 2);
  std::string text;
  for (int i = 0; i < 1001; ++i) text += "é";
  page.add(text, {-2, -1, -3});
  EXPECT_EQ(first(page).get_string("text"), text.substr(0, 2000) + "…");
  EXPECT_EQ(first(page).at("classes"),
            Json(Json::Array{Json(Json::Array{1, -1.0}), Json(Json::Array{0, -2.0})}));
  EXPECT_EQ(page.page().data.get_string("scale"), "none");
}

TEST(SimilarityPage, cosine_of_a_right_angle_is_0_and_of_a_zero_vector_too) {
  const std::vector<std::vector<float>> vectors = {{3, 4}, {-8, 6}, {6, 8}, {0, 0}};
  EXPECT_EQ(cosines(vectors), (std::vector<float>{1, 0, 1, 0, 0, 1, 0, 0, 1, 0, 1, 0, 0, 0, 0, 0}));
}

TEST(Shortened, texts_that_fit_are_kept) {
  EXPECT_EQ(shortened("añb", 3), "añb");
  EXPECT_EQ(shortened("añb", 2), "añ…");
  EXPECT_EQ(shortened("", 2), "");
}

}  // namespace
}  // namespace heddle::inspect
