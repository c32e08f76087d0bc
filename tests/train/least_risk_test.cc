// Minimum Bayes risk on candidates whose agreement is plain to see.
#include "heddle/train/metrics/least_risk.h"

#include <gtest/gtest.h>

#include "heddle/base/error.h"

namespace heddle::train {
namespace {

using Lines = std::vector<std::string>;

TEST(LeastRisk, is_what_agrees_with_most) {
  EXPECT_EQ(least_risk(Lines{"a cat sleeps", "a dog runs in the snow", "a dog runs in snow",
                             "the dog runs in the snow"}),
            1u);
}

TEST(LeastRisk, equals_means_of_chrf) {
  const Lines candidates = {"one two three", "one two four", "two three four", "one two", "five"};
  size_t expected = 0;
  double most = -1;
  for (size_t i = 0; i < candidates.size(); ++i) {
    double sum = 0;
    for (size_t j = 0; j < candidates.size(); ++j) {
      if (i == j) continue;
      sum += corpus_chrf(Lines{candidates[i]}, Lines{candidates[j]}).score;
    }
    if (sum > most) expected = i, most = sum;
  }
  EXPECT_EQ(least_risk(candidates), expected);
}

TEST(LeastRisk, copies_count_as_often_as_they_come_and_the_first_of_equals_wins) {
  EXPECT_EQ(least_risk(Lines{"x y z", "a b c", "a b c"}), 1u);
  EXPECT_EQ(least_risk(Lines{"x y z", "a b c"}), 0u);
  EXPECT_EQ(least_risk(Lines{"b", "a"}), 0u);
  EXPECT_EQ(least_risk(Lines{""}), 0u);
  EXPECT_THROW(least_risk(Lines{}), Error);
}

}  // namespace
}  // namespace heddle::train
