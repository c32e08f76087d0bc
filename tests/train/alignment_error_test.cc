// Alignment error rate by hand, and what is no alignment.
#include "heddle/train/metrics/metrics.h"

#include <gtest/gtest.h>

#include "tests/base/temporary.h"

namespace heddle::train {
namespace {

TEST(AlignmentError, equals_counts_by_hand) {
  const GoldAlignment gold = parse_gold("0-0 1-1 2-2 2p3 1p0", 0, false, "gold");
  AlignmentScore score;
  // A = 4, S = 3, A and S = 2, A and P = 3: 1 - 5 / 7.
  add_pair(score, {{0, 0}, {0, 3}, {1, 0}, {1, 1}}, gold, 3, 4);
  EXPECT_DOUBLE_EQ(score.precision(), 3.0 / 4);
  EXPECT_DOUBLE_EQ(score.recall(), 2.0 / 3);
  EXPECT_DOUBLE_EQ(score.error_rate(), 1 - 5.0 / 7);
  // A pair that is found whole: A = S = P = 1.
  add_pair(score, {{0, 0}}, parse_gold("0-0", 0, false, "gold"), 1, 1);
  EXPECT_DOUBLE_EQ(score.error_rate(), 1 - 7.0 / 9);
}

TEST(AlignmentError, is_0_for_the_sure_links_and_1_for_none_of_them) {
  const GoldAlignment gold = parse_gold("1-1 1p2", 0, false, "gold");
  AlignmentScore same, other;
  add_pair(same, {{1, 1}}, gold, 3, 3);
  add_pair(other, {{0, 0}}, gold, 3, 3);
  EXPECT_EQ(same.error_rate(), 0);
  EXPECT_EQ(other.error_rate(), 1);
}

TEST(ParseGold, base_and_order_are_honoured_and_doubles_counted_once) {
  const GoldAlignment gold = parse_gold(" 2-1  3p1 2-1", 1, true, "gold");
  EXPECT_EQ(gold.sure, (Alignment{{0, 1}}));
  EXPECT_EQ(gold.possible, (Alignment{{0, 1}, {0, 2}}));
}

TEST(AlignmentError, gold_links_to_words_that_are_not_there_are_left_out_and_counted) {
  AlignmentScore score;
  add_pair(score, {{0, 0}}, parse_gold("0-0 2-0 0-5", 0, false, "gold"), 2, 2);
  EXPECT_EQ(score.out_of_range, 2);
  EXPECT_EQ(score.sure, 1);
  EXPECT_EQ(score.error_rate(), 0);
}

TEST(ParseGold, anything_else_is_a_data_error_that_shows_it) {
  for (const char* bad : {"1", "1-", "-1", "a-b", "1-2x", "1=2", "1--2", "99999999999-1"}) {
    expect_error(ErrorKind::data, {"f: line 3", bad},
                 [&] { parse_gold(bad, 0, false, "f: line 3"); });
  }
  expect_error(ErrorKind::data, {"0-1", "gold_base"}, [&] { parse_gold("0-1", 1, false, "f"); });
}

}  // namespace
}  // namespace heddle::train
