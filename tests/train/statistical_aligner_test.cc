// IBM's models on pairs whose words' translations are known, and symmetrization by hand.
#include "heddle/train/alignment/statistical_aligner.h"

#include <gtest/gtest.h>

#include "heddle/base/error.h"
#include "heddle/base/rng.h"

namespace heddle::train {
namespace {

TEST(StatisticalAligner, model_1_equals_a_count_by_hand) {
  // Brown et al.'s example: "das Haus", "das Buch", "ein Buch". One iteration from even
  // probabilities without none: each word of a pair of two gets half, so t(the | das) =
  // (1/2 + 1/2) / 2 = 1/2, t(house | das) = 1/4, t(book | das) = 1/4.
  const std::vector<LineWords> german = {{"das", "Haus"}, {"das", "Buch"}, {"ein", "Buch"}};
  const std::vector<LineWords> english = {{"the", "house"}, {"the", "book"}, {"a", "book"}};
  AlignerOptions options{.model = 1, .iterations = 1, .null = 0, .prior = 0};
  const StatisticalAligner once(german, english, options);
  EXPECT_DOUBLE_EQ(once.translation("das", "the"), 0.5);
  EXPECT_DOUBLE_EQ(once.translation("das", "house"), 0.25);
  EXPECT_DOUBLE_EQ(once.translation("Haus", "house"), 0.5);
  EXPECT_DOUBLE_EQ(once.translation("ein", "house"), 1e-9);
  // The second, of what das gets. Pair 1: "the" 1/2 against Haus 1/2, that is 1/2; "house" 1/4
  // against 1/2, that is 1/3. Pair 2: "the" 1/2 against Buch 1/4, that is 2/3; "book" 1/4 against
  // 1/2, that is 1/3.
  options.iterations = 2;
  const StatisticalAligner twice(german, english, options);
  const double the = 1.0 / 2 + 2.0 / 3, house = 1.0 / 3, book = 1.0 / 3;
  EXPECT_NEAR(twice.translation("das", "the"), the / (the + house + book), 1e-12);
  options.iterations = 30;
  EXPECT_GT(StatisticalAligner(german, english, options).translation("das", "the"), 0.95);
}

// Sentences of words w0, w1, .. and the same with v, in the same order or backwards.
struct Pairs {
  std::vector<LineWords> source, target;

  Pairs(int lines, bool is_reversed) {
    for (int i = 0; i < lines; ++i) {
      LineWords a, b;
      const int words = 3 + i % 5;
      for (int k = 0; k < words; ++k) {
        const std::string number = std::to_string((i * 7 + k * k * 3 + k * i) % 23);
        a.push_back("W" + number + (k + 1 == words ? "." : ""));
        b.push_back("v" + number);
      }
      if (is_reversed) std::ranges::reverse(b);
      source.push_back(a);
      target.push_back(b);
    }
  }
};

TEST(StatisticalAligner, punctuation_of_any_script_is_no_part_of_a_word) {
  const std::vector<LineWords> german = {{"\u201EHaus\u201C"}, {"Haus\u2026"}, {"\u2014"}};
  const std::vector<LineWords> english = {{"house"}, {"House!"}, {"-"}};
  const StatisticalAligner aligner(german, english, {.model = 1, .null = 0, .prior = 0});
  EXPECT_DOUBLE_EQ(aligner.translation("HAUS", "\u00ABhouse\u00BB"), 1);
  EXPECT_DOUBLE_EQ(aligner.translation("\u2014", "-"), 1);
}

TEST(StatisticalAligner, finds_the_words_of_sentences_turned_round) {
  const Pairs pairs(200, true);
  const StatisticalAligner aligner(pairs.source, pairs.target, {});
  const Alignment links = aligner.align({"w1", "w2", "w3."}, {"v3", "v2", "v1"});
  EXPECT_EQ(links, (Alignment{{0, 2}, {1, 1}, {2, 0}}));
  EXPECT_LT(aligner.tension(), 1);  // the diagonal says nothing
}

TEST(StatisticalAligner, tension_grows_where_words_keep_their_order_and_places_unknown_words) {
  const Pairs pairs(200, false);
  const StatisticalAligner aligner(pairs.source, pairs.target, {});
  EXPECT_GT(aligner.tension(), 4);
  const LineWords unknown = {"x", "y", "z"};
  EXPECT_EQ(aligner.align(unknown, unknown), (Alignment{{0, 0}, {1, 1}, {2, 2}}));
  EXPECT_EQ(aligner.align({}, unknown), Alignment());
  EXPECT_EQ(aligner.align(unknown, {}), Alignment());
}

TEST(Symmetrize, equals_links_by_hand) {
  // Forward has the corner and a far link; backward adds a neighbour and a lone link.
  const Alignment forward = {{0, 0}, {1, 1}, {4, 2}}, backward = {{0, 0}, {0, 1}, {1, 1}, {3, 4}};
  EXPECT_EQ(symmetrize(forward, backward, "intersection"), (Alignment{{0, 0}, {1, 1}}));
  EXPECT_EQ(symmetrize(forward, backward, "union"),
            (Alignment{{0, 0}, {0, 1}, {1, 1}, {3, 4}, {4, 2}}));
  // (0, 1): both words have links already. (4, 2) and (3, 4): both words lack one, so they are in.
  EXPECT_EQ(symmetrize(forward, backward, "grow-diag-final-and"),
            (Alignment{{0, 0}, {1, 1}, {3, 4}, {4, 2}}));
  // A neighbour one of whose words lacks a link is taken.
  EXPECT_EQ(symmetrize({{0, 0}, {1, 1}}, {{0, 0}}, "grow-diag-final-and"),
            (Alignment{{0, 0}, {1, 1}}));
  EXPECT_EQ(symmetrize({{0, 0}, {0, 1}}, {{0, 0}}, "grow-diag-final-and"),
            (Alignment{{0, 0}, {0, 1}}));
  EXPECT_THROW(symmetrize({}, {}, "grow"), Error);
}

}  // namespace
}  // namespace heddle::train
