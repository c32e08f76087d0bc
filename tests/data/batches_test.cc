// Batches of an epoch, shards of a batch, and the batch that the model takes.
#include "heddle/data/batches.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "heddle/base/error.h"
#include "heddle/base/rng.h"
#include "heddle/data/token_cache.h"
#include "tests/base/temporary.h"

namespace heddle {
namespace {

struct Lengths {
  std::vector<int32_t> source, target;
  explicit Lengths(int64_t pairs, uint64_t longest = 40) {
    RngStream rng(make_key(7, 0, 0));
    for (int64_t i = 0; i < pairs; ++i) {
      source.push_back(static_cast<int32_t>(rng.below(longest)) + 1);
      target.push_back(static_cast<int32_t>(rng.below(longest)) + 1);
    }
  }
  PairLengths view() const { return {source, target}; }
};

struct Rows {
  int64_t source = 0, target = 0;
};

Rows rows_of(const Lengths& lengths, std::span<const int64_t> batch) {
  Rows rows;
  for (const int64_t p : batch) {
    rows.source += lengths.source[static_cast<size_t>(p)] + 1;
    rows.target += lengths.target[static_cast<size_t>(p)] + 1;
  }
  return rows;
}

void expect_each_pair_once(const BatchPlan& plan, int64_t pairs) {
  std::vector<int64_t> seen;
  for (int64_t i = 0; i < plan.size(); ++i) {
    EXPECT_FALSE(plan.batch(i).empty());
    seen.insert(seen.end(), plan.batch(i).begin(), plan.batch(i).end());
  }
  std::sort(seen.begin(), seen.end());
  std::vector<int64_t> all(static_cast<size_t>(pairs));
  std::iota(all.begin(), all.end(), int64_t{0});
  EXPECT_EQ(seen, all);
}

TEST(PlanEpoch, each_pair_is_in_one_batch_and_no_batch_exceeds_the_budget) {
  const Lengths lengths(5003);
  for (const int64_t block : {int64_t{1}, int64_t{700}, int64_t{5003}, int64_t{1} << 24}) {
    for (const int64_t pool : {0, 1, 333}) {
      const BatchOptions options{
          .batch_tokens = 512, .block_size = block, .sort_pool = pool, .seed = 3};
      const BatchPlan plan = plan_epoch(lengths.view(), options, 1);
      expect_each_pair_once(plan, 5003);
      for (int64_t i = 0; i < plan.size(); ++i) {
        const Rows rows = rows_of(lengths, plan.batch(i));
        EXPECT_LE(std::max(rows.source, rows.target), 512);
      }
    }
  }
}

TEST(PlanEpoch, is_a_pure_function_of_seed_and_epoch) {
  const Lengths lengths(2000);
  const auto plan = [&](uint64_t seed, int64_t epoch) {
    return plan_epoch(lengths.view(), {.batch_tokens = 512, .seed = seed}, epoch);
  };
  EXPECT_EQ(plan(1, 5), plan(1, 5));
  EXPECT_FALSE(plan(1, 5) == plan(1, 6));
  EXPECT_FALSE(plan(1, 5) == plan(2, 5));
}

TEST(PlanEpoch, order_of_a_known_seed_stays) {  // resuming an old run must meet the same batches
  Lengths lengths(0);
  lengths.source = {3, 1, 4, 1, 5, 9, 2, 6};
  lengths.target = {2, 7, 1, 8, 2, 8, 1, 8};
  const BatchPlan plan = plan_epoch(lengths.view(), {.batch_tokens = 14, .seed = 42}, 3);
  std::vector<std::vector<int64_t>> batches;
  for (int64_t i = 0; i < plan.size(); ++i) {
    batches.emplace_back(plan.batch(i).begin(), plan.batch(i).end());
  }
  EXPECT_EQ(batches, (std::vector<std::vector<int64_t>>{{7}, {5}, {4, 1}, {6, 2, 0}, {3}}));
}

TEST(PlanEpoch, batches_are_nearly_full_and_alike_in_size) {
  const Lengths lengths(20'000);
  const BatchPlan plan = plan_epoch(lengths.view(), {.batch_tokens = 1000}, 0);
  int64_t smallest = 1000, used = 0;
  for (int64_t i = 0; i < plan.size(); ++i) {
    const Rows rows = rows_of(lengths, plan.batch(i));
    const int64_t larger = std::max(rows.source, rows.target);
    smallest = std::min(smallest, larger);
    used += larger;
  }
  // The longest sentence has 41 rows, so a batch that is cut early lacks at most 40 of the budget;
  // the last one takes what is left, which evening out keeps from being a single sentence.
  EXPECT_GT(smallest, 800);
  EXPECT_GT(used, plan.size() * 960);
}

TEST(PlanEpoch, lengths_within_a_batch_are_alike_and_equal_ones_change_company) {
  const Lengths lengths(20'000, 20);
  const BatchOptions options{.batch_tokens = 1000, .seed = 9};
  const BatchPlan plan = plan_epoch(lengths.view(), options, 0);
  for (int64_t i = 0; i < plan.size(); ++i) {
    const auto batch = plan.batch(i);
    const auto target = [&](int64_t p) { return lengths.target[static_cast<size_t>(p)]; };
    EXPECT_LE(target(batch.back()) - target(batch.front()), 1);
  }
  std::set<std::vector<int64_t>> first, both;
  for (int64_t epoch = 0; epoch < 2; ++epoch) {
    const BatchPlan p = plan_epoch(lengths.view(), options, epoch);
    for (int64_t i = 0; i < p.size(); ++i) {
      std::vector<int64_t> batch(p.batch(i).begin(), p.batch(i).end());
      std::sort(batch.begin(), batch.end());
      if (epoch == 0) first.insert(batch);
      if (epoch == 1 && first.contains(batch)) both.insert(batch);
    }
  }
  EXPECT_TRUE(both.empty());
}

TEST(PlanEpoch, blocks_keep_neighbours_of_the_corpus_together) {
  const Lengths lengths(1000);
  const BatchPlan plan =
      plan_epoch(lengths.view(), {.batch_tokens = 200, .block_size = 100, .seed = 1}, 0);
  for (int64_t i = 0; i < plan.size(); ++i) {
    const auto batch = plan.batch(i);
    int64_t far = 0;  // around the end of the corpus
    for (const int64_t p : batch) {
      const int64_t gap = std::abs(p - batch[0]);
      far = std::max(far, std::min(gap, 1000 - gap));
    }
    EXPECT_LT(far, 100);
  }
}

TEST(PlanEpoch, without_shuffle_is_sorted_and_the_same_each_epoch) {
  const Lengths lengths(3000);
  const BatchOptions options{.batch_tokens = 512, .shuffle = false};
  const BatchPlan plan = plan_epoch(lengths.view(), options, 0);
  EXPECT_EQ(plan,
            plan_epoch(lengths.view(), {.batch_tokens = 512, .shuffle = false, .seed = 5}, 7));
  expect_each_pair_once(plan, 3000);
  std::vector<std::vector<int64_t>> keys;
  for (int64_t i = 0; i < plan.size(); ++i) {
    for (const int64_t p : plan.batch(i)) {
      const auto at = static_cast<size_t>(p);
      keys.push_back({lengths.target[at], lengths.source[at], p});
    }
  }
  EXPECT_TRUE(std::is_sorted(keys.begin(), keys.end()));
}

TEST(PlanEpoch, pair_beyond_the_budget_is_a_usage_error_that_names_it) {
  Lengths lengths(10);
  lengths.target[6] = 100;
  EXPECT_NO_THROW(plan_epoch(lengths.view(), {.batch_tokens = 101}, 0));
  expect_error(ErrorKind::usage, {"pair 6", "101 target", "at most 100"},
               [&] { plan_epoch(lengths.view(), {.batch_tokens = 100}, 0); });
}

TEST(PlanEpoch, options_out_of_range_are_usage_errors) {
  const Lengths lengths(10);
  for (const BatchOptions& options :
       {BatchOptions{.batch_tokens = 0}, BatchOptions{.block_size = 0},
        BatchOptions{.sort_pool = -1}}) {
    expect_error(ErrorKind::usage, {"batches:"}, [&] { plan_epoch(lengths.view(), options, 0); });
  }
}

TEST(PlanEpoch, no_pairs_give_no_batches) {
  EXPECT_EQ(plan_epoch(Lengths(0).view(), {}, 0).size(), 0);
}

TEST(SplitBatch, shards_hold_each_pair_once_and_nearly_equal_tokens) {
  const Lengths lengths(300);
  std::vector<int64_t> batch(300);
  std::iota(batch.begin(), batch.end(), int64_t{0});
  for (const int64_t shards : {1, 2, 3, 4, 7}) {
    const auto parts = split_batch(lengths.view(), batch, shards);
    ASSERT_EQ(std::ssize(parts), shards);
    std::vector<int64_t> seen, loads;
    for (const auto& part : parts) {
      EXPECT_TRUE(std::is_sorted(part.begin(), part.end()));  // the batch's order
      seen.insert(seen.end(), part.begin(), part.end());
      const Rows rows = rows_of(lengths, part);
      loads.push_back(rows.source + rows.target);
    }
    std::sort(seen.begin(), seen.end());
    EXPECT_EQ(seen, batch);
    const auto [least, most] = std::minmax_element(loads.begin(), loads.end());
    EXPECT_LE(*most - *least, *most / 100);  // the shortest pairs come last and even it out
    EXPECT_EQ(parts, split_batch(lengths.view(), batch, shards));
  }
}

TEST(SplitBatch, fewer_pairs_than_shards_give_no_empty_shard) {
  const Lengths lengths(3);
  const std::vector<int64_t> batch = {2, 0};
  EXPECT_EQ(split_batch(lengths.view(), batch, 4).size(), 2u);
  expect_error(ErrorKind::usage, {"0 shards"}, [&] { split_batch(lengths.view(), batch, 0); });
}

TEST(TranslationBatch, rows_are_laid_end_to_end_with_special_ids) {
  TemporaryFolder folder;
  folder.write("train.a", "xyz\nv\nuw\n");
  folder.write("train.b", "ab\nabc\nc\n");
  const TextEncoder letters{
      .encode =
          [](std::string_view text) { return std::vector<int32_t>(text.begin(), text.end()); },
      .fingerprint = "letters",
      .vocab_size = 256};
  const TokenizedCorpus corpus =
      TokenizedCorpus::open_or_build({.files = find_parallel(folder.path(), "train", "a", "b"),
                                      .cache_dir = folder / "cache",
                                      .name = "train.a-b"},
                                     letters);
  const std::vector<int64_t> pairs = {2, 0};
  const PairMarks usual = {.source_end = {3}, .target_start = {9}, .target_end = 3};
  const TranslationBatch batch = make_translation_batch(corpus, pairs, usual);
  EXPECT_EQ(batch.source, (std::vector<int32_t>{'u', 'w', 3, 'x', 'y', 'z', 3}));
  EXPECT_EQ(batch.target_in, (std::vector<int32_t>{9, 'c', 9, 'a', 'b'}));
  EXPECT_EQ(batch.target_out, (std::vector<int32_t>{'c', 3, 'a', 'b', 3}));
  EXPECT_EQ(batch.source_segments, Segments::from_lengths(std::vector<int64_t>{3, 4}));
  EXPECT_EQ(batch.target_segments, Segments::from_lengths(std::vector<int64_t>{2, 3}));
  EXPECT_EQ(batch.samples, pairs);
  EXPECT_EQ(batch.source_sample, (std::vector<uint32_t>{2, 2, 2, 0, 0, 0, 0}));
  EXPECT_EQ(batch.source_position, (std::vector<uint32_t>{0, 1, 2, 0, 1, 2, 3}));
  EXPECT_EQ(batch.target_sample, (std::vector<uint32_t>{2, 2, 0, 0, 0}));
  EXPECT_EQ(batch.target_position, (std::vector<uint32_t>{0, 1, 0, 1, 2}));
  EXPECT_EQ(batch.target_tokens, 5);
  const TranslationBatch twice = make_translation_batch(corpus, pairs, usual, {.passes = 2});
  EXPECT_EQ(twice.target_out, (std::vector<int32_t>{'c', 3, 'a', 'b', 3, 'c', 3, 'a', 'b', 3}));
  EXPECT_EQ(twice.samples, (std::vector<int64_t>{2, 0, 2, 0}));
  const uint32_t again = 1u << 31;  // the second pass is of other samples
  EXPECT_EQ(twice.target_sample,
            (std::vector<uint32_t>{2, 2, 0, 0, 0, again | 2, again | 2, again, again, again}));
  const PairMarks told = {
      .source_start = {7}, .source_end = {3, 6}, .target_start = {9, 8}, .target_end = 3};
  const TranslationBatch marked = make_translation_batch(corpus, pairs, told);
  EXPECT_EQ(marked.source, (std::vector<int32_t>{7, 'u', 'w', 3, 6, 7, 'x', 'y', 'z', 3, 6}));
  EXPECT_EQ(marked.target_in, (std::vector<int32_t>{9, 8, 'c', 9, 8, 'a', 'b'}));
  EXPECT_EQ(marked.target_out, (std::vector<int32_t>{-1, 'c', 3, -1, 'a', 'b', 3}));
  EXPECT_EQ(marked.target_segments, Segments::from_lengths(std::vector<int64_t>{3, 4}));
  EXPECT_EQ(marked.target_position, (std::vector<uint32_t>{0, 1, 2, 0, 1, 2, 3}));
  EXPECT_EQ(marked.target_tokens, 5);
  expect_error(ErrorKind::internal, {"pair 3 of a corpus of 3"},
               [&] { make_translation_batch(corpus, std::vector<int64_t>{3}, {}); });
}

}  // namespace
}  // namespace heddle
