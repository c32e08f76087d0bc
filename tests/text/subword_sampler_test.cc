// Subword regularisation: the same text, other segmentations, as often as they should come.
#include "heddle/text/subword_sampler.h"

#include <gtest/gtest.h>
#include <sentencepiece_processor.h>

#include <cmath>
#include <map>
#include <utility>

#include "heddle/base/error.h"
#include "heddle/text/subwords/subword_model.h"
#include "tests/base/temporary.h"
#include "tests/support/cli_runner.h"
#include "tests/text/small_tokenizers.h"

namespace heddle {
namespace {

using Ids = std::vector<int32_t>;

Ids drawn(const SubwordSampler& sampler, const Ids& ids, uint64_t number) {
  RngStream random(make_key(7, 1, number));
  Ids out;
  sampler.sample(ids, random, out);
  return out;
}

// How often each segmentation of a text comes, of so many draws.
std::map<Ids, double> shares(const SubwordModel& model, std::string_view text, double rate,
                             int draws) {
  std::map<Ids, double> counts;
  for (int i = 0; i < draws; ++i) {
    RngStream random(make_key(3, static_cast<uint64_t>(i), 5));
    Ids ids;
    model.sample(text, rate, random, ids);
    counts[ids] += 1.0 / draws;
  }
  return counts;
}

// Four standard deviations of a share of so many draws.
double tolerance(double share, int draws) { return 4 * std::sqrt(share * (1 - share) / draws); }

TEST(BpeSampling, leaves_out_merges_as_often_as_the_rate_says) {
  // a b c, then ab, then abc: at rate p the first step has ab with 1 - p, the second abc.
  const auto model = make_bpe(Vocabulary::of_list({"a", "b", "c", "ab", "abc"}, "test"),
                              {{"a", "b"}, {"ab", "c"}}, BpeOptions{}, "test");
  constexpr int kDraws = 20000;
  constexpr double kRate = 0.3;
  auto found = shares(*model, "abc", kRate, kDraws);
  ASSERT_EQ(found.size(), 3u);
  const double apart = kRate, half = (1 - kRate) * kRate, whole = (1 - kRate) * (1 - kRate);
  EXPECT_NEAR((found[Ids{0, 1, 2}]), apart, tolerance(apart, kDraws));
  EXPECT_NEAR((found[Ids{3, 2}]), half, tolerance(half, kDraws));
  EXPECT_NEAR((found[Ids{4}]), whole, tolerance(whole, kDraws));
  EXPECT_EQ(shares(*model, "abc", 1, 10).size(), 1u);
}

TEST(BpeSampling, a_merge_that_is_left_out_does_not_come_back) {
  // ab and cd stand side by side, each with its own chance.
  const auto model = make_bpe(Vocabulary::of_list({"a", "b", "c", "d", "ab", "cd", "abcd"}, "test"),
                              {{"a", "b"}, {"c", "d"}, {"ab", "cd"}}, BpeOptions{}, "test");
  constexpr int kDraws = 20000;
  constexpr double kRate = 0.3, kKept = 1 - kRate;
  auto found = shares(*model, "abcd", kRate, kDraws);
  const std::map<Ids, double> expected = {{{0, 1, 2, 3}, kRate * kRate},
                                          {{4, 2, 3}, kKept * kRate},
                                          {{0, 1, 5}, kRate * kKept},
                                          {{4, 5}, kKept * kKept * kRate},
                                          {{6}, kKept * kKept * kKept}};
  ASSERT_EQ(found.size(), expected.size());
  for (const auto& [ids, p] : expected) EXPECT_NEAR(found[ids], p, tolerance(p, kDraws));
}

// Of two histograms of as many draws, and how many cells it is of; rare ones are one.
std::pair<double, int> chi_square(std::map<Ids, int> a, std::map<Ids, int> b) {
  double sum = 0, rare_a = 0, rare_b = 0;
  int cells = 0;
  const auto add = [&](double x, double y) {
    sum += (x - y) * (x - y) / (x + y);
    ++cells;
  };
  for (const auto& [ids, count] : a) b.try_emplace(ids, 0);
  for (const auto& [ids, count] : b) {
    if (a[ids] + count >= 20) {
      add(a[ids], count);
    } else {
      rare_a += a[ids], rare_b += count;
    }
  }
  if (rare_a + rare_b > 0) add(rare_a, rare_b);
  return {sum, cells};
}

TEST(SubwordSampler, draws_as_sentencepiece_does) {
  constexpr int kDraws = 100'000;
  const TemporaryFolder folder;
  sentencepiece::SetRandomGeneratorSeed(5);
  for (const TokenizerType type : {TokenizerType::bpe, TokenizerType::unigram}) {
    const Tokenizer tokenizer = testing::small_tokenizer(type);
    tokenizer.save(folder / "m.model");
    sentencepiece::SentencePieceProcessor processor;
    ASSERT_TRUE(processor.Load(folder / "m.model").ok());
    for (const char* word : {"newspaper", "the old man"}) {
      for (const double rate : {0.1, 0.5}) {
        const SubwordSampler sampler(tokenizer, rate);
        const Ids ids = tokenizer.encode(word);
        std::map<Ids, int> ours, theirs;
        for (int i = 0; i < kDraws; ++i) {
          ++ours[drawn(sampler, ids, static_cast<uint64_t>(i))];
          ++theirs[processor.SampleEncodeAsIds(word, -1, static_cast<float>(rate))];
        }
        const auto [sum, cells] = chi_square(ours, theirs);
        EXPECT_GT(cells, 2) << word;
        // Five standard deviations beyond its mean.
        EXPECT_LT(sum, cells - 1 + 5 * std::sqrt(2.0 * (cells - 1))) << word << " at " << rate;
      }
    }
  }
}

TEST(UnigramSampling, draws_by_the_power_of_probabilities) {
  const std::vector<double> scores = {std::log(0.3), std::log(0.2), std::log(0.1), std::log(0.25),
                                      std::log(0.15)};
  const auto model =
      make_unigram(Vocabulary::of_list({"a", "b", "c", "ab", "bc"}, "test"), scores, {}, "test");
  constexpr int kDraws = 20000;
  for (const double rate : {0.2, 1.0}) {
    std::map<Ids, double> expected = {
        {{0, 1, 2}, 0.3 * 0.2 * 0.1}, {{3, 2}, 0.25 * 0.1}, {{0, 4}, 0.3 * 0.15}};
    double all = 0;
    for (auto& [ids, p] : expected) all += p = std::pow(p, rate);
    auto found = shares(*model, "abc", rate, kDraws);
    ASSERT_EQ(found.size(), expected.size());
    for (const auto& [ids, p] : expected) {
      EXPECT_NEAR(found[ids], p / all, tolerance(p / all, kDraws)) << rate;
    }
  }
}

TEST(SubwordSampler, text_stays_and_segmentations_change) {
  for (const TokenizerType type : {TokenizerType::bpe, TokenizerType::unigram}) {
    const Tokenizer tokenizer = testing::small_tokenizer(type);
    const SubwordSampler sampler(tokenizer, 0.2);
    std::vector<std::string> texts = testing::small_corpus();
    texts.push_back("  two  spaces, 猫 and \xE2\x96\x81 its sign\n");
    texts.push_back("");
    int changed = 0;
    for (size_t i = 0; i < texts.size(); ++i) {
      const Ids ids = tokenizer.encode(texts[i]), other = drawn(sampler, ids, i);
      EXPECT_EQ(tokenizer.decode(other), texts[i]);
      EXPECT_EQ(drawn(sampler, ids, i), other);
      changed += other != ids;
    }
    EXPECT_GT(changed, 150);
  }
}

TEST(SubwordSampler, at_no_merge_at_all_words_are_characters) {
  const Tokenizer tokenizer = testing::small_tokenizer(TokenizerType::bpe);
  const Ids ids = drawn(SubwordSampler(tokenizer, 1), tokenizer.encode("the old man"), 1);
  EXPECT_EQ(ids.size(), 12u);  // with the space in front
}

TEST(SubwordSampler, special_ids_and_what_is_unknown_stay) {
  const Tokenizer tokenizer = testing::small_tokenizer(TokenizerType::unigram, "identity", false);
  const SubwordSampler sampler(tokenizer, 0.5);
  Ids ids = {tokenizer.bos_id()};
  for (const int32_t id : tokenizer.encode("the 猫 man")) ids.push_back(id);
  ids.push_back(tokenizer.eos_id());
  ASSERT_EQ(std::ranges::count(ids, tokenizer.unk_id()), 1);
  const Ids other = drawn(sampler, ids, 4);
  EXPECT_EQ(other.front(), tokenizer.bos_id());
  EXPECT_EQ(other.back(), tokenizer.eos_id());
  EXPECT_EQ(std::ranges::count(other, tokenizer.unk_id()), 1);
  EXPECT_EQ(tokenizer.decode(other), tokenizer.decode(ids));
}

TEST(SubwordSampler, other_tokenizers_and_rates_are_refused) {
  const Tokenizer tokenizer = testing::small_tokenizer(TokenizerType::bpe);
  EXPECT_THROW(SubwordSampler(tokenizer, 0), Error);
  EXPECT_THROW(SubwordSampler(tokenizer, 1.5), Error);
  const TemporaryFolder folder;
  testing::write_file(folder / "vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n##b\n");
  const Tokenizer bert = Tokenizer::load(folder / "vocab.txt");
  EXPECT_THROW(SubwordSampler(bert, 0.1), Error);
}

}  // namespace
}  // namespace heddle
