// N-best lists, forced beginnings and rules against exhaustive search and naive references.
#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <set>

#include "heddle/base/parallel.h"
#include "heddle/infer/search/beam.h"
#include "tests/base/temporary.h"
#include "tests/infer/plain_decoding.h"

namespace heddle::testing {
namespace {

struct Scored {
  Ids ids;
  double log_p = 0, score = 0;
};

// Every sentence of at most `longest` tokens with its probability, best score first.
std::vector<Scored> all_sentences(const SmallModel& m, const Ids& source, size_t longest) {
  std::vector<Scored> all;
  const auto vocab = m.config.vocab_size;
  const std::function<void(const Ids&, double)> visit = [&](const Ids& prefix, double log_p) {
    for (const NextToken& w :
         best_tokens(uncached_logits(m.model, source, prefix, {}), {.count = vocab})) {
      if (w.id == 0 || w.id == 2) continue;
      const double sum = log_p + w.log_p;
      if (w.id == 3) {
        const auto length = static_cast<int64_t>(prefix.size()) + 1;
        all.push_back({prefix, sum, sum / length_penalty(length, 1.0)});
      } else if (prefix.size() < longest) {
        Ids longer = prefix;
        longer.push_back(w.id);
        visit(longer, sum);
      }
    }
  };
  visit({}, 0);
  std::sort(all.begin(), all.end(),
            [](const Scored& a, const Scored& b) { return a.score > b.score; });
  return all;
}

// Tokens 1, 4, 5, 6 beside the special ones: 1 + 4 + 16 sentences of up to two tokens.
class TinyVocabulary : public ::testing::Test {
 protected:
  SmallModel tiny{small_config(7)};
  std::vector<Ids> source{{4, 6, 5}};
};

TEST_F(TinyVocabulary, full_width_beam_lists_all_sentences_as_exhaustive_search_does) {
  const auto all = all_sentences(tiny, source[0], 2);
  ASSERT_EQ(all.size(), 21u);
  for (const int64_t n : {1, 5, 21, 30}) {
    const auto ours = translate_ids(
        tiny.model, source, {.search = {.beam = 100, .n_best = n}, .longest_without_end = 2})[0];
    ASSERT_EQ(ours.others.size() + 1, std::min<size_t>(static_cast<size_t>(n), 21));
    for (size_t i = 0; i <= ours.others.size(); ++i) {
      const Translation& t = i == 0 ? ours : ours.others[i - 1];
      EXPECT_EQ(t.ids, all[i].ids) << n << " " << i;
      EXPECT_NEAR(t.score, all[i].score, 1e-5) << n << " " << i;
    }
  }
}

// Upper 1e-4 quantile of chi-square with k degrees of freedom (Wilson & Hilferty 1931).
double chi_square_limit(double k) {
  return k * std::pow(1 - 2 / (9 * k) + 3.719 * std::sqrt(2 / (9 * k)), 3);
}

TEST_F(TinyVocabulary, sampled_sentences_come_as_often_as_their_probability_says) {
  constexpr int64_t kSamples = 4000;
  const auto ours =
      translate_ids(tiny.model, source,
                    {.search = {.n_best = kSamples, .samples = true}, .longest_without_end = 2})[0];
  ASSERT_EQ(ours.others.size() + 1, static_cast<size_t>(kSamples));
  std::map<Ids, double> count;
  ++count[ours.ids];
  for (const Translation& t : ours.others) ++count[t.ids];
  // Tokens 0 and 2 never come: the others share their probability, at each place.
  const auto left = [&](const Ids& prefix) {
    double p = 1;
    for (const NextToken& w :
         best_tokens(uncached_logits(tiny.model, source[0], prefix, {}), {.count = 7})) {
      if (w.id == 0 || w.id == 2) p -= std::exp(static_cast<double>(w.log_p));
    }
    return p;
  };
  double chi_square = 0, cells = -1, total = 0, rest = 0, rest_seen = 0;
  for (const Scored& s : all_sentences(tiny, source[0], 2)) {
    double p = 1;
    Ids prefix;
    for (const int32_t id : with_end(s.ids)) {
      if (prefix.size() < 2) {  // else the end is forced
        const Ids forced = {id};
        p *= std::exp(static_cast<double>(
                 best_tokens(uncached_logits(tiny.model, source[0], prefix, {}), {}, forced)[0]
                     .log_p)) /
             left(prefix);
      }
      prefix.push_back(id);
    }
    total += p;
    const double wanted = p * kSamples, seen = count[s.ids];
    if (wanted < 8) {
      rest += wanted, rest_seen += seen;
      continue;
    }
    chi_square += (seen - wanted) * (seen - wanted) / wanted;
    ++cells;
  }
  EXPECT_NEAR(total, 1, 1e-5);
  if (rest > 0) chi_square += (rest_seen - rest) * (rest_seen - rest) / rest, ++cells;
  EXPECT_GE(cells, 5);
  EXPECT_LT(chi_square, chi_square_limit(cells)) << cells;
}

class Options : public ::testing::Test {
 protected:
  SmallModel m{small_config()};
  std::vector<Ids> sources = random_sentences(16, 9, 40);
};

TEST_F(Options, longer_list_changes_none_of_the_first) {
  const auto one = translate_ids(m.model, sources, {.search = {.beam = 5}});
  const auto three = translate_ids(m.model, sources, {.search = {.beam = 5, .n_best = 3}});
  const auto five = translate_ids(m.model, sources, {.search = {.beam = 5, .n_best = 5}});
  expect_same(three, one);
  expect_same(five, one);
  for (size_t i = 0; i < sources.size(); ++i) {
    ASSERT_EQ(three[i].others.size(), 2u);
    std::set<Ids> different = {five[i].ids};
    double last = five[i].score;
    for (size_t j = 0; j < five[i].others.size(); ++j) {
      const Translation& t = five[i].others[j];
      EXPECT_LE(t.score, last);
      last = t.score;
      EXPECT_TRUE(different.insert(t.ids).second);
      if (j < 2) {
        EXPECT_EQ(t.ids, three[i].others[j].ids);
      }
    }
  }
}

TEST_F(Options, forced_prefixes_hold_and_their_score_counts) {
  std::vector<Ids> prefixes = random_sentences(16, 4, 40, 8);
  prefixes[3].clear();
  const auto free = translate_ids(m.model, sources, {.search = {.beam = 3}});
  for (const int64_t beam : {1, 3}) {
    const auto ours = translate_ids(
        m.model, sources, {.search = {.beam = beam, .length_penalty = 0}, .prefixes = prefixes});
    for (size_t i = 0; i < sources.size(); ++i) {
      const Ids& ids = ours[i].ids;
      ASSERT_GE(ids.size(), prefixes[i].size());
      EXPECT_TRUE(std::equal(prefixes[i].begin(), prefixes[i].end(), ids.begin())) << i;
      double log_p = 0;
      Ids before;
      for (const int32_t id : with_end(ids)) {
        const Ids forced = {id};
        log_p += best_tokens(uncached_logits(m.model, sources[i], before, {}), {}, forced)[0].log_p;
        before.push_back(id);
      }
      EXPECT_NEAR(ours[i].score, log_p, 1e-5 * std::abs(log_p)) << i;
    }
  }
  // The beginning of what comes anyhow changes nothing.
  std::vector<Ids> beginnings;
  for (const Translation& t : translate_ids(m.model, sources, {})) {
    beginnings.emplace_back(t.ids.begin(), t.ids.begin() + std::min<int64_t>(2, t.ids.size()));
  }
  const TranslateOptions fixed{.longest_without_end = 12, .prefixes = beginnings};
  expect_same(translate_ids(m.model, sources, fixed),
              translate_ids(m.model, sources, {.longest_without_end = 12}));
}

// Greedy decoding with rules, token by token, in f64 and with sets of n-grams.
Ids plain_greedy(const SmallModel& m, const Ids& source, size_t max_tokens,
                 const SearchConfig& rules) {
  Ids ids;
  while (ids.size() < max_tokens) {
    std::set<Ids> ngrams;
    const auto n = static_cast<size_t>(rules.no_repeat_ngram.value_or(0));
    const double penalty = rules.repetition_penalty.value_or(1);
    for (size_t i = 0; n > 0 && i + n <= ids.size(); ++i) {
      ngrams.insert(Ids(ids.begin() + i, ids.begin() + i + n));
    }
    const auto logits = uncached_logits(m.model, source, ids, {}).to_floats();
    int32_t best = -1;
    double most = -1e30;
    for (int32_t id = 0; id < static_cast<int32_t>(logits.size()); ++id) {
      double x = logits[id];
      if (std::count(ids.begin(), ids.end(), id) > 0) {
        x = x > 0 ? x / penalty : x * penalty;
      }
      Ids end(ids);
      end.push_back(id);
      if (n > 0 && end.size() >= n && ngrams.count(Ids(end.end() - n, end.end())) > 0) continue;
      if (std::ranges::count(rules.banned_beginnings, end) > 0) continue;
      if (id == 0 || id == 2) continue;
      if (id == 3 && static_cast<int64_t>(ids.size()) < rules.min_new_tokens.value_or(0)) continue;
      if (x > most) most = x, best = id;
    }
    if (best == 3) break;
    ids.push_back(best);
  }
  return ids;
}

TEST_F(Options, rules_equal_a_naive_reference) {
  // What comes without rules, so many tokens of it.
  const auto beginnings_of = [&](size_t n) {
    std::vector<Ids> all;
    for (const Translation& t : translate_ids(m.model, sources, {.longest_without_end = 18})) {
      if (t.ids.size() >= n)
        all.emplace_back(t.ids.begin(), t.ids.begin() + static_cast<int64_t>(n));
    }
    return all;
  };
  const std::vector<SearchConfig> all = {
      {.no_repeat_ngram = 1},
      {.no_repeat_ngram = 2},
      {.min_new_tokens = 14, .no_repeat_ngram = 3},
      {.repetition_penalty = 1.5},
      {.repetition_penalty = 0.6},
      {.min_new_tokens = 9},
      {.min_new_tokens = 10, .no_repeat_ngram = 2, .repetition_penalty = 1.1},
      {.banned_beginnings = beginnings_of(1)},
      {.banned_beginnings = beginnings_of(3)}};
  const auto unruled = translate_ids(m.model, sources, {.longest_without_end = 18});
  for (size_t r = 0; r < all.size(); ++r) {
    const auto ours =
        translate_ids(m.model, sources, {.search = all[r], .longest_without_end = 18});
    size_t changed = 0;
    for (size_t i = 0; i < sources.size(); ++i) {
      EXPECT_EQ(ours[i].ids, plain_greedy(m, sources[i], 18, all[r])) << r << " " << i;
      changed += ours[i].ids != unruled[i].ids;
    }
    EXPECT_GT(changed, 0u) << r;  // else it shows nothing
  }
}

TEST_F(Options, no_hypothesis_of_a_beam_repeats_an_ngram_or_ends_too_early) {
  const TranslateOptions o{
      .search = {.min_new_tokens = 6, .beam = 4, .no_repeat_ngram = 2, .n_best = 4},
      .longest_without_end = 20};
  for (Translation& t : translate_ids(m.model, sources, o)) {
    t.others.push_back({.ids = t.ids, .text = {}});
    for (const Translation& each : t.others) {
      EXPECT_GE(each.ids.size(), 6u);
      EXPECT_LE(each.ids.size(), 20u);
      std::set<std::pair<int32_t, int32_t>> pairs;
      for (size_t i = 1; i < each.ids.size(); ++i) {
        EXPECT_TRUE(pairs.insert({each.ids[i - 1], each.ids[i]}).second);
      }
    }
  }
}

TEST_F(Options, end_comes_where_the_rules_leave_no_token) {
  const SmallModel tiny(small_config(7));
  const TranslateOptions o{.search = {.min_new_tokens = 30, .beam = 2, .no_repeat_ngram = 1}};
  const auto ours = translate_ids(tiny.model, std::vector<Ids>{{4, 6, 5}}, o);
  EXPECT_EQ(std::set<int32_t>(ours[0].ids.begin(), ours[0].ids.end()),
            (std::set<int32_t>{1, 4, 5, 6}));
  EXPECT_EQ(ours[0].ids.size(), 4u);
}

TEST_F(Options, batches_and_threads_change_no_bit) {
  const std::vector<TranslateOptions> all = {
      {.search = {.beam = 4, .no_repeat_ngram = 2, .repetition_penalty = 1.2, .n_best = 3}},
      {.search = {.temperature = 1.3, .top_p = 0.9, .seed = 4, .n_best = 3, .samples = true}},
      {.search = {.min_new_tokens = 4, .top_k = 5, .samples = true}, .prefixes = {{7, 9}}}};
  const int before = num_threads();
  for (const TranslateOptions& o : all) {
    set_num_threads(1);
    const auto one = translate_ids(m.model, sources, o);
    for (const int threads : {1, 3}) {
      set_num_threads(threads);
      for (const int64_t tokens : {1, 50, 1 << 20}) {
        TranslateOptions other = o;
        other.batch_tokens = tokens;
        const auto again = translate_ids(m.model, sources, other);
        expect_same(again, one);
        for (size_t i = 0; i < one.size(); ++i) expect_same(again[i].others, one[i].others);
      }
    }
  }
  set_num_threads(before);
}

// Of which threads have sentences of their own where these are many.
TEST(LargeModel, threads_change_no_bit) {
  TransformerConfig config = small_config(33'000);
  config.d_model = 256;
  const SmallModel large(config);
  ASSERT_GT(least_rows_of_engine(large.model), 0);
  const auto sources = random_sentences(70, 6, 33'000);
  const TranslateOptions options = {.search = {.beam = 4}, .longest_without_end = 2};
  const int before = num_threads();
  set_num_threads(1);
  const auto one = translate_ids(large.model, sources, options);
  for (const int threads : {2, 3, 8}) {
    set_num_threads(threads);
    expect_same(translate_ids(large.model, sources, options), one);
  }
  set_num_threads(before);
}

TEST_F(Options, samples_are_functions_of_seed_and_line_number) {
  const auto sample = [&](int64_t seed, std::span<const Ids> from, int64_t first_line) {
    return translate_ids(m.model, from,
                         {.search = {.seed = seed, .samples = true, .first_line = first_line}});
  };
  const auto all = sample(1, sources, 1);
  expect_same(sample(1, std::span(sources).subspan(5), 6), {all.begin() + 5, all.end()});
  const auto other = sample(2, sources, 1), moved = sample(1, sources, 2);
  size_t by_seed = 0, by_line = 0;
  for (size_t i = 0; i < all.size(); ++i) {
    by_seed += all[i].ids != other[i].ids;
    by_line += all[i].ids != moved[i].ids;
  }
  EXPECT_GT(by_seed, 8u);
  EXPECT_GT(by_line, 8u);
}

TEST_F(Options, sampling_one_token_only_is_greedy) {
  expect_same(translate_ids(m.model, sources, {.search = {.top_k = 1, .samples = true}}),
              translate_ids(m.model, sources, {}));
  expect_same(translate_ids(m.model, sources, {.search = {.min_p = 1, .samples = true}}),
              translate_ids(m.model, sources, {}));
}

TEST_F(Options, values_out_of_range_are_usage_errors) {
  const auto fails = [&](const char* text, const TranslateOptions& o) {
    expect_error(ErrorKind::usage, {text}, [&] { translate_ids(m.model, sources, o); });
  };
  fails("n_best is 0", {.search = {.n_best = 0}});
  fails("n_best is 3", {.search = {.beam = 2, .n_best = 3}});
  fails("sample", {.search = {.beam = 2, .samples = true}});
  fails("temperature is -1", {.search = {.temperature = -1, .samples = true}});
  fails("top_k is -1", {.search = {.top_k = -1, .samples = true}});
  fails("top_p is 0", {.search = {.top_p = 0, .samples = true}});
  fails("top_p is nan", {.search = {.top_p = NAN, .samples = true}});
  fails("min_p is 2", {.search = {.min_p = 2, .samples = true}});
  fails("no_repeat_ngram_size is -1", {.search = {.no_repeat_ngram = -1}});
  fails("repetition_penalty is 0", {.search = {.repetition_penalty = 0}});
  fails("min_length is 9", {.search = {.min_new_tokens = 9}, .longest_without_end = 8});
  fails("2 prefixes for 16 sentences", {.prefixes = {{4}, {5}}});
}

TEST_F(Options, prefix_that_is_no_sequence_of_tokens_is_a_data_error) {
  const auto fails = [&](const char* text, const TranslateOptions& o) {
    expect_error(ErrorKind::data, {text}, [&] { translate_ids(m.model, sources, o); });
  };
  fails("the id 40 is no token", {.prefixes = {{4, 40}}});
  fails("the id 3 is no token", {.prefixes = {{4, 3}}});
  fails("more than max_length 2", {.longest_without_end = 2, .prefixes = {{4, 5, 6}}});
}

}  // namespace
}  // namespace heddle::testing
