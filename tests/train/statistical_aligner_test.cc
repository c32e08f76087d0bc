// IBM's models on pairs whose words' translations are known, and symmetrization by hand.
#include "heddle/train/alignment/statistical_aligner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "heddle/base/error.h"
#include "heddle/base/parallel.h"
#include "heddle/base/rng.h"

namespace heddle::train {
namespace {

using Words = std::vector<std::string>;

// Both sides, and what is learned from them, asked by words.
struct Learned {
  WordLines sources, targets;
  StatisticalAligner aligner;

  Learned(const std::vector<Words>& source, const std::vector<Words>& target,
          const AlignerOptions& options)
      : sources(lines_of(source)), targets(lines_of(target)), aligner(sources, targets, options) {}

  static WordLines lines_of(const std::vector<Words>& lines) {
    WordLines numbers;
    for (const Words& line : lines) numbers.add(line);
    return numbers;
  }
  double translation(const std::string& source, const std::string& target) const {
    return aligner.translation(sources.numbers_of(Words{source})[0],
                               targets.numbers_of(Words{target})[0]);
  }
  Alignment align(const Words& source, const Words& target) const {
    return aligner.align(sources.numbers_of(source), targets.numbers_of(target));
  }
};

TEST(StatisticalAligner, model_1_equals_a_count_by_hand) {
  // Brown et al.'s example: "das Haus", "das Buch", "ein Buch". One iteration from even
  // probabilities without none: each word of a pair of two gets half, so t(the | das) =
  // (1/2 + 1/2) / 2 = 1/2, t(house | das) = 1/4, t(book | das) = 1/4.
  const std::vector<Words> german = {{"das", "Haus"}, {"das", "Buch"}, {"ein", "Buch"}};
  const std::vector<Words> english = {{"the", "house"}, {"the", "book"}, {"a", "book"}};
  AlignerOptions options{.model = 1, .iterations = 1, .null = 0, .prior = 0};
  const Learned once(german, english, options);
  EXPECT_DOUBLE_EQ(once.translation("das", "the"), 0.5);
  EXPECT_DOUBLE_EQ(once.translation("das", "house"), 0.25);
  EXPECT_DOUBLE_EQ(once.translation("Haus", "house"), 0.5);
  EXPECT_DOUBLE_EQ(once.translation("ein", "house"), 1e-9);
  // The second, of what das gets. Pair 1: "the" 1/2 against Haus 1/2, that is 1/2; "house" 1/4
  // against 1/2, that is 1/3. Pair 2: "the" 1/2 against Buch 1/4, that is 2/3; "book" 1/4 against
  // 1/2, that is 1/3.
  options.iterations = 2;
  const Learned twice(german, english, options);
  const double the = 1.0 / 2 + 2.0 / 3, house = 1.0 / 3, book = 1.0 / 3;
  EXPECT_NEAR(twice.translation("das", "the"), the / (the + house + book), 1e-6);  // f32
  options.iterations = 30;
  EXPECT_GT(Learned(german, english, options).translation("das", "the"), 0.95);
}

// Sentences of words w0, w1, .. and the same with v, in the same order or backwards.
struct Pairs {
  std::vector<Words> source, target;

  Pairs(int lines, bool is_reversed) {
    for (int i = 0; i < lines; ++i) {
      Words a, b;
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
  const std::vector<Words> german = {{"\u201EHaus\u201C"}, {"Haus\u2026"}, {"\u2014"}};
  const std::vector<Words> english = {{"house"}, {"House!"}, {"-"}};
  const Learned aligner(german, english, {.model = 1, .null = 0, .prior = 0});
  EXPECT_DOUBLE_EQ(aligner.translation("HAUS", "\u00ABhouse\u00BB"), 1);
  EXPECT_DOUBLE_EQ(aligner.translation("\u2014", "-"), 1);
}

TEST(StatisticalAligner, finds_the_words_of_sentences_turned_round) {
  const Pairs pairs(200, true);
  const Learned aligner(pairs.source, pairs.target, {});
  const Alignment links = aligner.align({"w1", "w2", "w3."}, {"v3", "v2", "v1"});
  EXPECT_EQ(links, (Alignment{{0, 2}, {1, 1}, {2, 0}}));
  EXPECT_LT(aligner.aligner.tension(), 1);  // the diagonal says nothing
}

TEST(StatisticalAligner, tension_grows_where_words_keep_their_order_and_places_unknown_words) {
  const Pairs pairs(200, false);
  const Learned aligner(pairs.source, pairs.target, {});
  EXPECT_GT(aligner.aligner.tension(), 4);
  const Words unknown = {"x", "y", "z"};
  EXPECT_EQ(aligner.align(unknown, unknown), (Alignment{{0, 0}, {1, 1}, {2, 2}}));
  EXPECT_EQ(aligner.align({}, unknown), Alignment());
  EXPECT_EQ(aligner.align(unknown, {}), Alignment());
}

TEST(StatisticalAligner, learns_the_same_bits_on_any_number_of_threads) {
  const Pairs pairs(1000, false);
  const int threads = num_threads();
  std::vector<double> found;
  for (const int n : {1, 3}) {
    set_num_threads(n);
    const Learned learned(pairs.source, pairs.target, {});
    found.push_back(learned.aligner.tension());
    for (int32_t a = 0; a <= 23; ++a) {
      for (int32_t b = 1; b <= 23; ++b) found.push_back(learned.aligner.translation(a, b));
    }
  }
  set_num_threads(threads);
  const auto half = found.begin() + std::ssize(found) / 2;
  EXPECT_TRUE(std::equal(found.begin(), half, half));
}

TEST(StatisticalAligner, pairs_of_too_many_words_are_passed_over) {
  const Words many(1001, "lang"), more(1001, "long");
  const Learned learned({{"das"}, many, {}}, {{"the"}, more, {"the"}}, {.model = 2});
  EXPECT_GT(learned.translation("das", "the"), 0.5);
  EXPECT_DOUBLE_EQ(learned.translation("lang", "long"), 1e-9);
}

// Words that are seen once, in long lines: each gets so little that the prior leaves exp(-90).
TEST(StatisticalAligner, words_seen_once_in_long_lines_are_placed_by_position) {
  Words source, target;
  for (int i = 0; i < 600; ++i) {
    source.push_back("a" + std::to_string(i));
    target.push_back("b" + std::to_string(i));
  }
  const Learned learned({source}, {target}, {.null = 0});
  EXPECT_TRUE(std::isfinite(learned.aligner.tension()));
  const Alignment links = learned.align(source, target);
  EXPECT_EQ(links.size(), 600u);
  for (const AlignmentLink& link : links) EXPECT_EQ(link.source, link.target);
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
  // What stands beside (1, 1) comes before what lies across its corner, which then lacks no link.
  EXPECT_EQ(symmetrize({{0, 0}, {1, 1}}, {{0, 1}, {1, 1}}, "grow-diag-final-and"),
            (Alignment{{0, 0}, {0, 1}, {1, 1}}));
  EXPECT_THROW(symmetrize({}, {}, "grow"), Error);
}

}  // namespace
}  // namespace heddle::train
