// Sums and texts between ranks that are processes: the bits of a sum in one process.
#include <gtest/gtest.h>

#include <bit>
#include <chrono>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <numeric>
#include <thread>

#include "heddle/base/error.h"
#include "heddle/base/rng.h"
#include "heddle/dist/group.h"
#include "tests/support/rank_processes.h"

namespace heddle::testing {
namespace {

using dist::Group;
using dist::GroupOptions;

// What rank r has at the start: numbers of many sizes, so that each order of a sum has other bits.
std::vector<float> values_of(int64_t rank, int64_t n) {
  RngStream rng(make_key(7, static_cast<uint64_t>(rank), 0));
  std::vector<float> values(static_cast<size_t>(n));
  for (float& v : values) {
    const uint32_t bits = rng.next();
    v = std::ldexp(static_cast<float>(bits >> 8) - 8e6f, static_cast<int>(bits % 40) - 20);
  }
  return values;
}

// The plain sum along the tree: of neighbours, then of pairs of neighbours.
std::vector<float> tree_sum(int64_t begin, int64_t end, int64_t n) {
  if (end - begin == 1) return values_of(begin, n);
  const int64_t middle = (begin + end) / 2;
  std::vector<float> lower = tree_sum(begin, middle, n);
  const std::vector<float> upper = tree_sum(middle, end, n);
  for (size_t i = 0; i < lower.size(); ++i) lower[i] = lower[i] + upper[i];
  return lower;
}

std::string bytes_of(const std::vector<float>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}

uint64_t hash_of(const std::vector<float>& values) { return hash_name(bytes_of(values)); }

class Sums : public ::testing::TestWithParam<int64_t> {};
INSTANTIATE_TEST_SUITE_P(Ranks, Sums, ::testing::Values(1, 2, 4, 8));

TEST_P(Sums, have_the_bits_of_a_tree_in_one_process) {
  const int64_t ranks = GetParam();
  const std::vector<int64_t> sizes = {0, 1, 15, 16, 17, 1000, 1000003};
  RankProcesses processes(ranks, [&](const GroupOptions& options) {
    const auto group = dist::make_group(options);
    std::string hashes;
    for (const int64_t n : sizes) {
      std::vector<float> values = values_of(group->rank(), n);
      group->reduce_scatter(values);
      // What is not this rank's is scratch: what all gather must not come from there.
      const dist::Slice mine = group->slice(n);
      for (int64_t i = 0; i < n; ++i) {
        if (i < mine.begin || i >= mine.end) values[static_cast<size_t>(i)] = -1;
      }
      group->all_gather(values);
      hashes += std::to_string(hash_of(values)) + " ";
    }
    return hashes;
  });
  std::string expected;
  for (const int64_t n : sizes) expected += std::to_string(hash_of(tree_sum(0, ranks, n))) + " ";
  for (const RankOutcome& outcome : processes.wait()) {
    EXPECT_EQ(outcome.exit_code, 0) << outcome.text;
    EXPECT_EQ(outcome.text, expected);
  }
}

// Started one behind the other, they go on while the caller waits for none of them; their memory is
// the group's meanwhile.
TEST_P(Sums, that_were_started_have_the_same_bits) {
  const std::vector<int64_t> sizes = {1000003, 0, 17, 50000};
  RankProcesses processes(GetParam(), [&](const GroupOptions& options) {
    const auto group = dist::make_group(options);
    std::vector<std::shared_ptr<std::vector<float>>> all;
    int64_t last = 0;
    for (const int64_t n : sizes) {
      const auto values = std::make_shared<std::vector<float>>(values_of(group->rank(), n));
      all.push_back(values);
      last = group->start_reduce_scatter({*values, values});
      last = group->start_all_gather({*values, values});
    }
    const auto texts = group->gather("behind them");
    group->finish(last);
    std::string hashes = std::to_string(texts.size()) + ": ";
    for (const auto& values : all) hashes += std::to_string(hash_of(*values)) + " ";
    return hashes;
  });
  std::string expected = std::to_string(GetParam()) + ": ";
  for (const int64_t n : sizes) {
    expected += std::to_string(hash_of(tree_sum(0, GetParam(), n))) + " ";
  }
  for (const RankOutcome& outcome : processes.wait()) EXPECT_EQ(outcome.text, expected);
}

// What `rank` has of an element after so many steps with wire bf16: its own is whole, what comes is
// rounded.
float rounded_sum(int64_t rank, int64_t steps, const std::vector<std::vector<float>>& all,
                  size_t i) {
  if (steps == 0) return all[static_cast<size_t>(rank)][i];
  const int64_t partner = rank ^ (int64_t{1} << (steps - 1));
  const float mine = rounded_sum(rank, steps - 1, all, i);
  const auto theirs = static_cast<float>(bf16(rounded_sum(partner, steps - 1, all, i)));
  return rank < partner ? mine + theirs : theirs + mine;
}

TEST_P(Sums, by_wire_bf16_round_what_is_sent_and_nothing_else) {
  constexpr int64_t n = 10007;
  const int64_t ranks = GetParam();
  const auto use_bf16 = [](GroupOptions& options) { options.wire = DType::bf16; };
  RankProcesses processes(
      ranks,
      [](const GroupOptions& options) {
        const auto group = dist::make_group(options);
        std::vector<float> values = values_of(group->rank(), n);
        group->reduce_scatter(values);
        group->all_gather(values);
        return std::to_string(hash_of(values));
      },
      use_bf16);
  std::vector<std::vector<float>> all;
  for (int64_t rank = 0; rank < ranks; ++rank) all.push_back(values_of(rank, n));
  std::vector<float> expected(n);
  for (int64_t rank = 0; rank < ranks; ++rank) {
    const dist::Slice slice = dist::slice_of(n, rank, ranks);
    for (int64_t i = slice.begin; i < slice.end; ++i) {
      const auto steps = std::bit_width(static_cast<uint64_t>(ranks)) - 1;
      expected[static_cast<size_t>(i)] = rounded_sum(rank, steps, all, static_cast<size_t>(i));
    }
  }
  for (const RankOutcome& outcome : processes.wait()) {
    EXPECT_EQ(outcome.text, std::to_string(hash_of(expected)));
  }
}

TEST_P(Sums, keep_what_is_not_a_number) {
  RankProcesses processes(GetParam(), [](const GroupOptions& options) -> std::string {
    const auto group = dist::make_group(options);
    std::vector<float> values(100, 1.0f);
    if (group->rank() == group->ranks() - 1) {
      values[3] = std::numeric_limits<float>::quiet_NaN();
      values[99] = std::numeric_limits<float>::infinity();
    }
    group->reduce_scatter(values);
    group->all_gather(values);
    const auto ranks = static_cast<float>(group->ranks());
    return std::isnan(values[3]) && std::isinf(values[99]) && values[4] == ranks ? "kept" : "lost";
  });
  for (const RankOutcome& outcome : processes.wait()) EXPECT_EQ(outcome.text, "kept");
}

TEST_P(Sums, texts_of_all_come_to_all_in_the_order_of_ranks) {
  RankProcesses processes(GetParam(), [](const GroupOptions& options) {
    const auto group = dist::make_group(options);
    const auto rank = static_cast<size_t>(group->rank());
    // Of unequal lengths, one empty, one of megabytes.
    std::string all;
    for (const std::string& text : group->gather(std::string(rank * rank * 100'000, 'a' + rank))) {
      all += fmt::format("{}{} ", text.size(), text.empty() ? "" : text.substr(text.size() - 1));
    }
    all += group->broadcast(fmt::format("of rank {}", rank));
    group->barrier();
    return all;
  });
  std::string expected;
  for (int64_t rank = 0; rank < GetParam(); ++rank) {
    const char letter = static_cast<char>('a' + rank);
    expected += fmt::format("{}{} ", rank * rank * 100'000, rank ? std::string(1, letter) : "");
  }
  for (const RankOutcome& outcome : processes.wait()) {
    EXPECT_EQ(outcome.text, expected + "of rank 0");
  }
}

TEST(Calls, that_fail_while_their_caller_computes_end_all_ranks) {
  RankProcesses processes(2, [](const GroupOptions& options) {
    const auto group = dist::make_group(options);
    const auto values = std::make_shared<std::vector<float>>(100 + group->rank());
    group->start_reduce_scatter({*values, values});
    for (;;) {  // asks no call
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      group->check_alive();
    }
    return std::string();
  });
  std::string all;
  for (const RankOutcome& outcome : processes.wait(20)) {
    EXPECT_EQ(outcome.exit_code, static_cast<int>(ErrorKind::ranks)) << outcome.text;
    all += outcome.text;
  }
  EXPECT_NE(all.find("of 101 values"), std::string::npos) << all;
}

TEST(Calls, of_different_kinds_are_an_error_that_names_both) {
  RankProcesses processes(2, [](const GroupOptions& options) {
    const auto group = dist::make_group(options);
    std::vector<float> values(100);
    if (group->rank() == 0) group->reduce_scatter(values);
    if (group->rank() == 1) group->all_gather(values);
    return std::string("went on");
  });
  const auto outcomes = processes.wait();
  for (const RankOutcome& outcome : outcomes) {
    EXPECT_NE(outcome.exit_code, 0);
    EXPECT_NE(outcome.text.find("call 2, reduce_scatter of 100 values"), std::string::npos)
        << outcome.text;
    EXPECT_NE(outcome.text.find("call 2, all_gather of 100 values"), std::string::npos)
        << outcome.text;
  }
}

TEST(Calls, of_different_lengths_are_an_error_that_names_both) {
  RankProcesses processes(2, [](const GroupOptions& options) {
    const auto group = dist::make_group(options);
    std::vector<float> values(group->rank() == 0 ? 100 : 101);
    group->reduce_scatter(values);
    return std::string("went on");
  });
  for (const RankOutcome& outcome : processes.wait()) {
    EXPECT_NE(outcome.exit_code, 0);
    EXPECT_NE(outcome.text.find("of 100 values"), std::string::npos) << outcome.text;
    EXPECT_NE(outcome.text.find("of 101 values"), std::string::npos) << outcome.text;
  }
}

}  // namespace
}  // namespace heddle::testing
