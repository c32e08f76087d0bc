// What a text repeats is drafted from it.
#include "heddle/infer/search/prompt_lookup.h"

#include <gtest/gtest.h>

#include <random>

namespace heddle::testing {
namespace {

using Ids = std::vector<int32_t>;

TEST(PromptLookup, tokens_behind_the_same_ngram_are_drafted) {
  EXPECT_EQ(look_up(Ids{1, 2, 3, 4, 5, 9, 1, 2}, 3), (Ids{3, 4, 5}));
}

TEST(PromptLookup, text_that_repeats_nothing_gives_no_draft) {
  EXPECT_EQ(look_up(Ids{}, 3), Ids{});
  EXPECT_EQ(look_up(Ids{1}, 3), Ids{});
  EXPECT_EQ(look_up(Ids{1, 2, 3, 4}, 3), Ids{});
  EXPECT_EQ(look_up(Ids{7, 1, 2, 7}, 3), Ids{});  // one token is too little
  EXPECT_EQ(look_up(Ids{1, 2, 1, 2}, 0), Ids{});
}

TEST(PromptLookup, longest_ngram_counts_then_the_latest) {
  EXPECT_EQ(look_up(Ids{4, 1, 2, 5, 3, 1, 2, 6, 4, 1, 2}, 1), Ids{5});
  EXPECT_EQ(look_up(Ids{3, 1, 2, 5, 3, 1, 2, 6, 4, 1, 2}, 1), Ids{6});
}

TEST(PromptLookup, text_that_goes_round_goes_on_round) {
  EXPECT_EQ(look_up(Ids{8, 1, 2, 3, 1, 2, 3}, 7), (Ids{1, 2, 3, 1, 2, 3, 1}));
  EXPECT_EQ(look_up(Ids{5, 5, 5}, 4), (Ids{5, 5, 5, 5}));
}

TEST(PromptLookup, draft_is_that_of_a_search_of_all_places) {
  std::mt19937 random(4);
  for (int round = 0; round < 2000; ++round) {
    Ids text(random() % 40);
    for (int32_t& id : text) id = static_cast<int32_t>(random() % 3);
    const int64_t n = std::ssize(text);
    int64_t longest = 0, found = 0;
    for (int64_t end = 1; end < n; ++end) {  // the plain definition, forwards
      int64_t length = 0;
      while (length < std::min(end, kLongestMatch) &&
             text[end - 1 - length] == text[n - 1 - length]) {
        ++length;
      }
      if (length >= longest) longest = length, found = end;
    }
    Ids wanted;
    if (longest >= kShortestMatch) {
      for (int64_t i = found; wanted.size() < 5; ++i) {
        wanted.push_back(i < n ? text[i] : wanted[i - n]);
      }
    }
    EXPECT_EQ(look_up(text, 5), wanted);
  }
}

}  // namespace
}  // namespace heddle::testing
