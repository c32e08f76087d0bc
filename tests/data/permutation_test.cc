// Spans and orders of predicted tokens: their statistics, and what is never predicted.
#include "heddle/data/masking.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

namespace heddle {
namespace {

TEST(Permutation, steps_number_the_targets_and_are_0_elsewhere) {
  const std::vector<int32_t> ids(200, 7);
  const Permutation p = draw_permutation(ids, {}, make_key(1, 2, 3, 4));
  ASSERT_EQ(p.steps.size(), ids.size());
  EXPECT_TRUE(std::is_sorted(p.targets.begin(), p.targets.end()));
  std::vector<int32_t> steps;
  for (const int32_t token : p.targets) steps.push_back(p.steps[static_cast<size_t>(token)]);
  EXPECT_FALSE(std::is_sorted(steps.begin(), steps.end()));
  std::sort(steps.begin(), steps.end());
  for (size_t i = 0; i < steps.size(); ++i) EXPECT_EQ(steps[i], static_cast<int32_t>(i) + 1);
  const auto open = std::count(p.steps.begin(), p.steps.end(), 0);
  EXPECT_EQ(static_cast<size_t>(open) + steps.size(), ids.size());
  EXPECT_EQ(draw_permutation(ids, {}, make_key(1, 2, 3, 4)).steps, p.steps);
  EXPECT_NE(draw_permutation(ids, {}, make_key(1, 2, 3, 5)).steps, p.steps);
}

// A window of span / share tokens holds one span: whole windows have just that share.
TEST(Permutation, a_share_of_the_tokens_is_predicted_in_spans) {
  const std::vector<int32_t> ids(600, 7);
  int64_t predicted = 0;
  std::map<int64_t, int64_t> runs;
  constexpr int64_t kDraws = 400;
  for (uint64_t i = 0; i < kDraws; ++i) {
    const Permutation p =
        draw_permutation(ids, {.share = 0.2, .max_span = 3}, make_key(5, 0, 0, i));
    predicted += static_cast<int64_t>(p.targets.size());
    for (size_t begin = 0, end = 0; begin < p.targets.size(); begin = end) {
      for (end = begin + 1; end < p.targets.size() && p.targets[end] == p.targets[end - 1] + 1;)
        ++end;
      ++runs[static_cast<int64_t>(end - begin)];
    }
  }
  // The last window is cut: up to 15 of 600 tokens.
  EXPECT_NEAR(static_cast<double>(predicted) / (600 * kDraws), 0.2, 0.004);
  // Spans of 1, 2 and 3 tokens are as likely; few touch.
  for (const int64_t span : {1, 2, 3})
    EXPECT_GT(runs[span], kDraws * 600 / 10 / 3 * 8 / 10) << span;
}

TEST(Permutation, each_order_of_the_targets_is_as_likely) {
  const std::vector<int32_t> ids = {1, 2, 3};  // share 1: all are predicted
  std::map<std::vector<int32_t>, int64_t> seen;
  for (uint64_t i = 0; i < 6000; ++i) {
    ++seen[draw_permutation(ids, {.share = 1, .max_span = 2}, make_key(9, 0, 0, i)).steps];
  }
  EXPECT_EQ(seen.size(), 6u);
  for (const auto& [steps, count] : seen) EXPECT_NEAR(count, 1000, 5 * 29);  // 5 sigma
}

TEST(Permutation, special_tokens_are_never_predicted_and_one_token_always_is) {
  const std::vector<int32_t> ids = {0, 0, 5, 0}, none = {0, 0};
  const auto is_special = [](int32_t id) { return id == 0; };
  for (uint64_t i = 0; i < 200; ++i) {
    const RngKey key = make_key(2, 0, 0, i);
    EXPECT_EQ(draw_permutation(ids, {.is_special = is_special}, key).targets,
              std::vector<int32_t>{2});
    EXPECT_TRUE(draw_permutation(none, {.is_special = is_special}, key).targets.empty());
  }
  EXPECT_TRUE(draw_permutation({}, {}, make_key(2, 0, 0, 0)).targets.empty());
}

}  // namespace
}  // namespace heddle
