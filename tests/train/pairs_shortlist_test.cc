// Shortlists that are learned from pairs of tokens.
#include "heddle/train/alignment/pairs_shortlist.h"

#include <gtest/gtest.h>

#include <random>

#include "heddle/base/error.h"
#include "tests/base/temporary.h"
#include "tests/text/small_tokenizers.h"

namespace heddle::train {
namespace {

constexpr int32_t kTokens = 60;

// Token s of a source is token 100 - s of its target; tokens 90 and 91 stand in each target.
struct Pairs {
  WordLines source, target;

  explicit Pairs(int lines) {
    std::mt19937 random(5);
    for (int i = 0; i < lines; ++i) {
      std::vector<int32_t> from, to = {90};
      for (size_t n = 2 + random() % 5; n > 0; --n) {
        from.push_back(4 + static_cast<int32_t>(random() % (kTokens - 4)));
        to.push_back(100 - from.back());
      }
      to.push_back(91);
      source.add_tokens(from);
      target.add_tokens(to);
    }
  }
};

TEST(PairsShortlist, the_likeliest_translation_of_each_token_is_in_its_list) {
  const Pairs pairs(800);
  const ShortlistTokens found =
      pairs_shortlist(pairs.source, pairs.target, kTokens, 101, {.each = 1, .frequent = 2});
  EXPECT_EQ(found.always, (std::vector<int32_t>{90, 91}));
  ASSERT_EQ(found.of_source.size(), static_cast<size_t>(kTokens));
  for (int32_t s = 0; s < kTokens; ++s) {
    const std::vector<int32_t> expected =
        s < 4 ? std::vector<int32_t>() : std::vector<int32_t>{100 - s};
    EXPECT_EQ(found.of_source[static_cast<size_t>(s)], expected) << s;
  }
}

TEST(PairsShortlist, shared_tokens_may_be_copied_though_they_were_never_seen) {
  const Pairs pairs(20);
  const ShortlistTokens found =
      pairs_shortlist(pairs.source, pairs.target, kTokens, 101, {.each = 3, .shares_tokens = true});
  for (int32_t s = 0; s < kTokens; ++s) {
    EXPECT_TRUE(std::ranges::count(found.of_source[static_cast<size_t>(s)], s) > 0) << s;
    EXPECT_LE(found.of_source[static_cast<size_t>(s)].size(), 4u);
  }
}

TEST(PairsShortlist, counts_say_how_many_tokens_of_translations_are_candidates) {
  const TemporaryFolder folder;
  const std::string path = folder / "list";
  const Tokenizer tokenizer = heddle::testing::small_tokenizer(TokenizerType::bpe);
  write_shortlist(path, {.always = {9}, .of_source = {{1, 2}, {3}}}, tokenizer, tokenizer);
  ShortlistCounts counts;
  counts.add(Shortlist(path), std::vector<int32_t>{0}, std::vector<int32_t>{9, 2, 3, 3});
  counts.add(Shortlist(path), std::vector<int32_t>{0, 1}, std::vector<int32_t>{3});
  EXPECT_EQ(counts.pairs, 2);
  EXPECT_EQ(counts.candidates, 3 + 4);
  EXPECT_EQ(counts.target_tokens, 5);
  EXPECT_EQ(counts.found, 3);
}

TEST(PairsShortlist, numbers_out_of_range_are_a_usage_error) {
  const Pairs pairs(3);
  for (const PairsShortlistOptions& o :
       {PairsShortlistOptions{.each = 0}, PairsShortlistOptions{.frequent = -1}}) {
    try {
      pairs_shortlist(pairs.source, pairs.target, kTokens, 101, o);
      FAIL() << "taken";
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::usage);
    }
  }
}

}  // namespace
}  // namespace heddle::train
