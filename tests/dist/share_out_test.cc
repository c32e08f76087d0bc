// Work that ranks share, by processes: results in the order of items, errors that are of all.
#include "heddle/dist/share_out.h"

#include <gtest/gtest.h>

#include "heddle/base/error.h"
#include "tests/support/rank_processes.h"

namespace heddle::testing {
namespace {

using dist::GroupOptions;

// What an item gives: plain values, texts, and vectors of these.
struct Found {
  int64_t item = 0;
  std::vector<std::string> texts = {};
  std::vector<float> values = {};

  template <class V>
  void parts(V& v) {
    v(item, texts, values);
  }
};

Found found_of(int64_t item) {
  const auto n = static_cast<size_t>(item % 4);
  return {item, std::vector<std::string>(n, std::string(n, 'x')), std::vector<float>(n, 0.5f)};
}

class Shares : public ::testing::TestWithParam<int64_t> {};
INSTANTIATE_TEST_SUITE_P(Ranks, Shares, ::testing::Values(1, 2, 8));

TEST_P(Shares, all_results_come_to_all_in_the_order_of_items_and_each_is_computed_once) {
  RankProcesses processes(GetParam(), [](const GroupOptions& options) {
    const auto group = dist::make_group(options);
    std::string text;
    for (const int64_t count : {0, 1, 5, 21}) {
      int64_t computed = 0;
      const auto all = dist::share_out_each<Found>(*group, count, [&](int64_t item) {
        ++computed;
        return found_of(item);
      });
      for (const Found& one : all) {
        text += fmt::format("{}:{}:{} ", one.item, fmt::join(one.texts, ","), one.values.size());
      }
      int64_t sum = 0;
      for (const std::string& told : group->gather(std::to_string(computed))) {
        sum += std::stoll(told);
        EXPECT_LE(std::stoll(told), count / group->ranks() + 1);
      }
      text += fmt::format("of {}; ", sum);
    }
    return ::testing::Test::HasFailure() ? "not shared" : text;
  });
  std::string expected;
  for (const int64_t count : {0, 1, 5, 21}) {
    for (int64_t i = 0; i < count; ++i) {
      const Found one = found_of(i);
      expected += fmt::format("{}:{}:{} ", i, fmt::join(one.texts, ","), one.values.size());
    }
    expected += fmt::format("of {}; ", count);
  }
  for (const RankOutcome& outcome : processes.wait()) {
    EXPECT_EQ(outcome.exit_code, 0) << outcome.text;
    EXPECT_EQ(outcome.text, expected);
  }
}

TEST(SharedErrors, are_those_of_the_rank_that_saw_them_on_all) {
  RankProcesses processes(4, [](const GroupOptions& options) {
    const auto group = dist::make_group(options);
    static_cast<void>(dist::share_out_each<int64_t>(*group, 40, [&](int64_t item) {
      check(group->rank() < 2, ErrorKind::data, "item {} is bad", item);
      return item;
    }));
    return std::string("went on");
  });
  for (const RankOutcome& outcome : processes.wait()) {
    EXPECT_EQ(outcome.exit_code, 3);
    EXPECT_EQ(outcome.text, "item 2 is bad");  // rank 2's first; rank 3 saw one too
  }
}

TEST(SharedErrors, do_not_hide_a_rank_that_is_lost) {
  RankProcesses processes(2, [](const GroupOptions& options) {
    const auto group = dist::make_group(options);
    static_cast<void>(dist::share_out_each<int64_t>(*group, 2, [&](int64_t item) {
      if (group->rank() == 1) std::_Exit(9);
      return item;
    }));
    return std::string("went on");
  });
  const RankOutcome first = processes.wait()[0];
  EXPECT_EQ(first.exit_code, 7);
  EXPECT_NE(first.text.find("rank 1"), std::string::npos) << first.text;
}

}  // namespace
}  // namespace heddle::testing
