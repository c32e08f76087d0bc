// The cache of decoding: rows that stay in place, and whose they are.
#include "heddle/nn/token_rows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "tests/base/temporary.h"

namespace heddle::nn {
namespace {

TEST(TokenRows, without_segments_or_with_positions_or_types_of_some_are_shape_errors) {
  const std::vector<int32_t> ids = {5, 6, 7}, two = {0, 1}, four = {0, 1, 2, 3};
  const Segments three = Segments::uniform(1, 3);
  expect_error(ErrorKind::shape, {"tokens have no segments"},
               [&] { static_cast<void>(TokenRows{.ids = ids}.positions()); });
  for (const std::vector<int32_t>& some : {two, four}) {
    expect_error(ErrorKind::shape, {"position ids for 3 tokens"}, [&] {
      static_cast<void>(
          TokenRows{.ids = ids, .segments = &three, .position_ids = some}.positions());
    });
    expect_error(ErrorKind::shape, {"token types for 3 tokens"}, [&] {
      static_cast<void>(TokenRows{.ids = ids, .segments = &three, .types = some}.positions());
    });
  }
  EXPECT_EQ((TokenRows{.ids = ids, .segments = &three, .types = ids}.positions()),
            (std::vector<int32_t>{0, 1, 2}));
}

TEST(RowCache, rows_stay_in_place_while_it_grows) {
  RowCache cache;
  std::vector<float> numbers(300 * 12);
  std::iota(numbers.begin(), numbers.end(), 0.0f);
  const Tensor wide = Tensor::from(numbers, {300, 12});
  const Tensor rows = wide.slice(1, 4, 8);  // columns of a wider tensor
  const std::vector<int32_t> first = {5, 6, 7, 0}, second = {299, 1, 2};
  cache.put(rows.slice(0, 0, 4), first);
  cache.put(rows.slice(0, 100, 3), second);
  const auto expect_row = [&](int32_t position, int64_t row) {
    EXPECT_EQ(cache.rows().slice(0, position, 1).to_floats(), rows.slice(0, row, 1).to_floats())
        << position;
  };
  for (int64_t i = 0; i < 4; ++i) expect_row(first[i], i);
  for (int64_t i = 0; i < 3; ++i) expect_row(second[i], 100 + i);
  EXPECT_GE(cache.rows().size(0), 300);
}

TEST(RowPool, numbers_given_back_are_taken_again) {
  RowPool pool;
  std::vector<int32_t> a, b, c;
  pool.take(3, a);
  pool.take(2, b);
  EXPECT_EQ(a, (std::vector<int32_t>{0, 1, 2}));
  EXPECT_EQ(b, (std::vector<int32_t>{3, 4}));
  pool.give_back(a);
  pool.take(4, c);
  EXPECT_EQ(c, (std::vector<int32_t>{0, 1, 2, 5}));
}

TEST(RowCache, grows_ahead_but_not_beyond_its_limit) {
  const std::vector<int32_t> first = {0, 1}, last = {99};
  RowCache cache;
  cache.put(Tensor::full({2, 4}, 1), first);
  EXPECT_EQ(cache.rows().size(0), 64);
  cache.limit(100);
  cache.put(Tensor::full({1, 4}, 2), last);
  EXPECT_EQ(cache.rows().size(0), 100);
  EXPECT_EQ(cache.rows().to_floats()[4], 1);
  EXPECT_EQ(cache.rows().to_floats()[99 * 4], 2);
}

TEST(KvCache, tokens_continue_their_sequences_in_rows_of_their_own) {
  KvCache cache(3, 1);
  cache.extend(Segments::from_lengths(std::vector<int64_t>{2, 1, 3}));
  EXPECT_EQ(std::vector<int32_t>(cache.position_ids().begin(), cache.position_ids().end()),
            (std::vector<int32_t>{0, 1, 0, 0, 1, 2}));
  cache.select(std::vector<int64_t>{0, 2});
  cache.extend(Segments::uniform(2, 1));
  EXPECT_EQ(std::vector<int32_t>(cache.position_ids().begin(), cache.position_ids().end()),
            (std::vector<int32_t>{2, 3}));
  const CachedKeys keys = cache.keys();
  EXPECT_EQ(std::vector<int32_t>(keys.key_rows.begin(), keys.key_rows.end()),
            (std::vector<int32_t>{0, 1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(*keys.keys, Segments::from_lengths(std::vector<int64_t>{3, 4}));
  EXPECT_EQ(keys.keys->length(1), 4);
  EXPECT_THROW(cache.extend(Segments::uniform(3, 1)), Error);
}

TEST(KvCache, sequence_that_forks_shares_its_tokens_until_nobody_has_them) {
  KvCache cache(1, 1);
  const auto key_rows = [&] {
    const std::span<const int32_t> rows = cache.keys().key_rows;
    return std::vector<int32_t>(rows.begin(), rows.end());
  };
  cache.extend(Segments::uniform(1, 3));
  cache.select(std::vector<int64_t>{0, 0});
  cache.add(1);
  cache.extend(Segments::from_lengths(std::vector<int64_t>{1, 1, 2}));
  EXPECT_EQ(key_rows(), (std::vector<int32_t>{0, 1, 2, 3, 0, 1, 2, 4, 5, 6}));
  cache.select(std::vector<int64_t>{1, 2});  // the row of the first sequence alone is free again
  cache.extend(Segments::uniform(2, 1));
  EXPECT_EQ(key_rows(), (std::vector<int32_t>{0, 1, 2, 4, 3, 5, 6, 7}));
  cache.select({});
  cache.add(1);
  cache.extend(Segments::uniform(1, 8));
  EXPECT_EQ(cache.keys().keys->length(0), 8);
  const std::vector<int32_t> rows = key_rows();
  EXPECT_EQ(*std::max_element(rows.begin(), rows.end()), 7);  // none was lost
}

}  // namespace
}  // namespace heddle::nn
