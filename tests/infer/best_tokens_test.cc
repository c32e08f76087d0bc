// The k best of a row against a full sort.
#include "heddle/infer/search/best_tokens.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>

#include "heddle/autograd/tape.h"
#include "heddle/base/parallel.h"
#include "heddle/infer/loading/loaded_model.h"
#include "heddle/ops/elementwise.h"
#include "tests/base/temporary.h"

namespace heddle {
namespace {

// Few different values, so that there are ties.
Tensor random_logits(int64_t rows, int64_t vocab, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<float> values(rows * vocab);
  for (float& v : values) v = static_cast<float>(static_cast<int>(random() % 200) - 100) / 16;
  return Tensor::from(values, {rows, vocab});
}

std::vector<int32_t> sorted_ids(const float* x, int64_t vocab) {
  std::vector<int32_t> ids(vocab);
  std::iota(ids.begin(), ids.end(), 0);
  std::stable_sort(ids.begin(), ids.end(), [&](int32_t a, int32_t b) { return x[a] > x[b]; });
  return ids;
}

double log_p(const float* x, int64_t vocab, int32_t id) {
  double sum = 0;
  for (int64_t i = 0; i < vocab; ++i) sum += std::exp(static_cast<double>(x[i]));
  return x[id] - std::log(sum);
}

TEST(BestTokens, equal_a_stable_sort_for_sizes_around_a_block) {
  for (const int64_t vocab : {1, 5, 127, 128, 129, 300, 1000}) {
    for (const int64_t count : {1, 2, 10}) {
      const Tensor logits = random_logits(7, vocab, static_cast<uint32_t>(vocab));
      const auto tokens = best_tokens(logits, {.count = count});
      ASSERT_EQ(tokens.size(), static_cast<size_t>(7 * count));
      for (int64_t r = 0; r < 7; ++r) {
        const float* x = logits.data<float>() + r * vocab;
        const auto ids = sorted_ids(x, vocab);
        for (int64_t i = 0; i < count; ++i) {
          const NextToken& w = tokens[r * count + i];
          ASSERT_EQ(w.id, i < vocab ? ids[i] : -1) << vocab << " " << count << " " << r;
          if (i < vocab) {
            EXPECT_NEAR(w.log_p, log_p(x, vocab, w.id), 1e-5);
          }
        }
      }
    }
  }
}

// Of few and of many blocks; those that are suppressed are the largest of theirs.
TEST(BestTokens, suppressed_ids_never_come_and_keep_their_share) {
  for (const int64_t vocab : {200, 3000}) {
    const Tensor logits = random_logits(3, vocab, 5), before = logits.clone();
    std::vector<int32_t> suppressed;
    for (int64_t r = 0; r < 3; ++r) {
      const auto ids = sorted_ids(logits.data<float>() + r * vocab, vocab);
      suppressed.insert(suppressed.end(), ids.begin(), ids.begin() + 4);
    }
    const auto tokens = best_tokens(logits, {.count = 4, .suppressed = suppressed});
    for (int64_t r = 0; r < 3; ++r) {
      const float* x = before.data<float>() + r * vocab;
      auto ids = sorted_ids(x, vocab);
      std::erase_if(ids, [&](int32_t id) { return std::ranges::count(suppressed, id) > 0; });
      for (int64_t i = 0; i < 4; ++i) {
        const NextToken& w = tokens[r * 4 + i];
        EXPECT_EQ(w.id, ids[i]);
        EXPECT_NEAR(w.log_p, log_p(x, vocab, w.id), 1e-5);
      }
    }
    EXPECT_EQ(logits.to_floats(), before.to_floats());
  }
}

// The part of a vocabulary of several that nothing is left of, too.
TEST(BestTokens, renormalized_log_p_is_that_among_what_may_come) {
  const Tensor logits = random_logits(2, 1500, 5);
  std::vector<int32_t> suppressed = {1200};
  for (int32_t id = 0; id < 1100; ++id) suppressed.push_back(id);
  const BestTokensRow row = {.count = 3, .suppressed = suppressed, .renormalizes = true};
  Tensor left = logits.clone();
  for (int64_t r = 0; r < 2; ++r) drop(row, std::span(left.data<float>() + r * 1500, 1500), 0);
  const auto tokens = best_tokens(left, row), as_is = best_tokens(logits, row);
  for (int64_t r = 0; r < 2; ++r) {
    for (int64_t i = 0; i < 3; ++i) {
      const NextToken& w = tokens[r * 3 + i];
      EXPECT_EQ(w.id, as_is[r * 3 + i].id);
      EXPECT_NEAR(w.log_p, log_p(left.data<float>() + r * 1500, 1500, w.id), 1e-5);
    }
  }
}

TEST(BestTokens, forced_row_has_the_forced_id_only) {
  const Tensor logits = random_logits(2, 50, 5);
  const std::vector<int32_t> forced = {-1, 3};
  const auto tokens = best_tokens(logits, {.count = 2}, forced);
  EXPECT_GE(tokens[1].id, 0);
  EXPECT_EQ(tokens[2].id, 3);
  EXPECT_NEAR(tokens[2].log_p, log_p(logits.data<float>() + 50, 50, 3), 1e-5);
  EXPECT_EQ(tokens[3].id, -1);
}

TEST(BestTokens, a_forced_token_is_its_own_where_it_is_the_likeliest_that_may_come) {
  Tensor logits = random_logits(1, 3000, 6);
  logits.data<float>()[7] = 40, logits.data<float>()[2500] = 30;
  const auto is_own = [&](int32_t id, BestTokensRow row) {
    row.forced = id;
    const auto tokens = best_tokens_of_rows(logits, std::span(&row, 1));
    EXPECT_EQ(tokens[0].id, id);
    return tokens[0].is_own;
  };
  const std::vector<int32_t> first = {7};
  EXPECT_TRUE(is_own(7, {}));
  EXPECT_FALSE(is_own(2500, {}));
  EXPECT_TRUE(is_own(2500, {.count = 3, .suppressed = first}));
  EXPECT_FALSE(is_own(7, {.banned = first}));
  TokenSet allowed(3000);
  allowed.add(2500), allowed.add(11);
  EXPECT_TRUE(is_own(2500, {.allowed = &allowed}));
  EXPECT_FALSE(is_own(11, {.allowed = &allowed}));
}

TEST(BestTokens, logits_that_are_not_finite_are_a_data_error) {
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
        -std::numeric_limits<float>::infinity()}) {
    expect_error(ErrorKind::data, {"no finite probability"}, [&] {
      best_tokens(Tensor::full({2, 300}, bad), {.count = 2});
    });
  }
}

TEST(BestTokens, without_scores_the_ids_are_the_same_and_nan_is_still_an_error) {
  Tensor logits = random_logits(9, 300, 3);
  const std::vector<NextToken> with = best_tokens(logits, {.count = 4});
  const std::vector<NextToken> without = best_tokens(logits, {.count = 4, .scores = false});
  for (size_t i = 0; i < with.size(); ++i) {
    EXPECT_EQ(without[i].id, with[i].id);
    EXPECT_EQ(without[i].log_p, 0);
  }
  logits.data<float>()[300 + 299] = std::numeric_limits<float>::quiet_NaN();
  expect_error(ErrorKind::data, {"no finite probability"},
               [&] { best_tokens(logits, {.scores = false}); });
}

// 300 rows: several parts of the vocabulary, the last one short, and of the rows. Three uses:
// weights packed as they are used, then kept packed.
TEST(BestTokens, of_an_output_in_parts_equal_those_of_all_logits) {
  const NoGrad off;
  const int threads = num_threads();
  const int64_t vocab = 5001, width = 33;
  for (const char* precision : {"f32", "bf16", "int8"}) {
    nn::Run run;
    run.use(resolve_precision(precision));
    nn::Parameters parameters(7);
    const nn::Scope s(parameters);
    nn::Parameter& weight = (s / "weight").parameter({vocab, width}, nn::Init::normal(1));
    const nn::OutputProjection output(weight,
                                      &(s / "bias").parameter({vocab}, nn::Init::normal(1)));
    const Tensor h = cast(random_logits(300, width, 5), run.compute);
    std::vector<int32_t> forced(300, -1);
    forced[3] = 5000, forced[4] = 2048, forced[5] = 0;
    for (int use = 0; use < 3; ++use) {
      set_num_threads(use < 2 ? 1 : threads);
      const BestTokensRow each = {.count = 3};
      const std::vector<NextToken> parts = best_tokens(output, h, run, each, forced);
      const std::vector<NextToken> whole = best_tokens(output(h, run), each, forced);
      for (size_t i = 0; i < whole.size(); ++i) {
        ASSERT_EQ(parts[i].id, whole[i].id) << precision << ", row " << i / 3;
        ASSERT_EQ(parts[i].log_p, whole[i].log_p) << precision << ", row " << i / 3;
      }
      EXPECT_EQ(parts[9].id, 5000);
    }
  }
}

TEST(BestTokens, one_nan_among_finite_logits_is_a_data_error) {
  Tensor logits = random_logits(1, 300, 1);
  logits.data<float>()[137] = std::numeric_limits<float>::quiet_NaN();
  expect_error(ErrorKind::data, {"no finite probability"},
               [&] { best_tokens(logits, {.count = 2}); });
}

}  // namespace
}  // namespace heddle
