// Decoding against its plain definition, and what must not change a result.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "heddle/base/parallel.h"
#include "heddle/infer/search/beam.h"
#include "tests/base/temporary.h"
#include "tests/infer/plain_decoding.h"

namespace heddle::testing {
namespace {

// Greedy decoding as one writes it down: the whole prefix again for each token.
Translation plain_greedy(const EncoderDecoder& model, const Ids& source, int64_t max_length,
                         double alpha, const nn::Run& run) {
  const Ids suppressed = {0, 2};
  Translation t;
  double log_p = 0;
  for (;;) {
    const int32_t forced = static_cast<int64_t>(t.ids.size()) + 1 >= max_length ? 3 : -1;
    const NextToken next = best_tokens(uncached_logits(model, source, t.ids, run),
                                       {.suppressed = suppressed, .forced = forced})[0];
    log_p += next.log_p;
    if (next.id == 3) break;
    t.ids.push_back(next.id);
  }
  t.score = log_p / length_penalty(static_cast<int64_t>(t.ids.size()) + 1, alpha);
  return t;
}

struct Case {
  std::string name;
  std::function<void(TransformerConfig&)> change;
  Precision precision = {};
};

class Decoding : public ::testing::TestWithParam<Case> {
 protected:
  TransformerConfig config() const {
    TransformerConfig c = small_config();
    GetParam().change(c);
    return c;
  }
  SmallModel m{config()};
  std::vector<Ids> sources = random_sentences(24, 9, 40);

  std::vector<Translation> translate(TranslateOptions o) const {
    o.precision = GetParam().precision;
    return translate_ids(m.model, sources, o);
  }
};

TEST_P(Decoding, cached_greedy_equals_uncached_decoding_bit_for_bit) {
  nn::Run run;
  run.use(GetParam().precision);
  const auto ours = translate({.search = {.beam = 1, .length_penalty = 0.7}});
  const auto without_scores = translate({.search = {.beam = 1}, .scores = false});
  size_t tokens = 0;
  for (size_t i = 0; i < sources.size(); ++i) {
    const int64_t most = 2 * static_cast<int64_t>(sources[i].size()) + 10;
    const Translation plain = plain_greedy(m.model, sources[i], most, 0.7, run);
    EXPECT_EQ(ours[i].ids, plain.ids) << i;
    EXPECT_EQ(ours[i].score, plain.score) << i;
    EXPECT_EQ(without_scores[i].ids, plain.ids) << i;
    tokens += plain.ids.size();
  }
  EXPECT_GT(tokens, sources.size());  // else it shows little
}

TEST_P(Decoding, sentence_alone_equals_the_same_in_any_batch) {
  for (const int64_t beam : {1, 3}) {
    const auto together = translate({.search = {.beam = beam}, .batch_tokens = 1 << 20});
    expect_same(translate({.search = {.beam = beam}, .batch_tokens = 1}), together);
    expect_same(translate({.search = {.beam = beam}, .batch_tokens = 77}), together);
  }
}

TEST_P(Decoding, one_thread_equals_two_and_three) {
  const int before = num_threads();
  for (const int64_t beam : {1, 4}) {
    set_num_threads(1);
    const auto one = translate({.search = {.beam = beam}});
    for (const int threads : {2, 3}) {
      set_num_threads(threads);
      expect_same(translate({.search = {.beam = beam}}), one);
    }
  }
  set_num_threads(before);
}

// Each hypothesis is scored again by one uncached pass over all of it.
TEST_P(Decoding, beam_score_is_the_log_probability_of_its_tokens) {
  nn::Run run;
  run.use(GetParam().precision);
  const auto ours = translate({.search = {.beam = 4, .length_penalty = 0.6}});
  for (size_t i = 0; i < sources.size(); ++i) {
    double log_p = 0;
    Ids prefix;
    for (const int32_t id : with_end(ours[i].ids)) {
      const Ids forced = {id};
      log_p += best_tokens(uncached_logits(m.model, sources[i], prefix, run), {}, forced)[0].log_p;
      prefix.push_back(id);
    }
    const auto length = static_cast<int64_t>(prefix.size());
    EXPECT_NEAR(ours[i].score, log_p / length_penalty(length, 0.6), 1e-5 * std::abs(log_p)) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Models, Decoding,
    ::testing::Values(
        Case{"post_norm", [](TransformerConfig&) {}},
        Case{"pre_norm", [](TransformerConfig& c) { c.normalize_before = true; }},
        Case{"learned_positions_untied_with_bias",
             [](TransformerConfig& c) {
               c.position_embedding_type = "learned";
               c.tie_word_embeddings = c.share_encoder_decoder_embeddings = false;
               c.output_bias = c.normalize_embedding = true;
             }},
        Case{"dot_scores", [](TransformerConfig& c) { c.attention_scoring = "dot"; }},
        Case{"additive_scores", [](TransformerConfig& c) { c.attention_scoring = "additive"; }},
        Case{"linear_scores", [](TransformerConfig& c) { c.attention_scoring = "linear"; }},
        Case{"rotary_and_swiglu",
             [](TransformerConfig& c) {
               c.position_embedding_type = "rotary";
               c.activation_function = "swiglu";
             }},
        Case{"separate_vocabularies",
             [](TransformerConfig& c) {
               c.share_encoder_decoder_embeddings = false;
               c.decoder_vocab_size = 57;
             }},
        Case{"rotary_additive_bf16",
             [](TransformerConfig& c) {
               c.position_embedding_type = "rotary";
               c.attention_scoring = "additive";
             },
             DType::bf16},
        // More columns than the driver's block of 512: views of the product are strided.
        Case{"large_vocabulary", [](TransformerConfig& c) { c.vocab_size = 1100; }},
        Case{"bf16", [](TransformerConfig&) {}, DType::bf16},
        Case{"int8", [](TransformerConfig&) {}, {DType::f32, true}},
        Case{"int8_and_bf16", [](TransformerConfig&) {}, {DType::bf16, true}}),
    [](const auto& c) { return c.param.name; });

class TranslateIds : public ::testing::Test {
 protected:
  SmallModel m{small_config()};
  std::vector<Ids> sources = random_sentences(20, 8, 40);
};

TEST_F(TranslateIds, results_stand_in_the_order_of_the_sources) {
  const auto forward = translate_ids(m.model, sources, {});
  const std::vector<Ids> reversed(sources.rbegin(), sources.rend());
  auto backward = translate_ids(m.model, reversed, {});
  std::reverse(backward.begin(), backward.end());
  expect_same(forward, backward);
}

TEST_F(TranslateIds, empty_source_gives_an_empty_translation) {
  sources[4].clear();
  const auto all = translate_ids(m.model, sources, {.search = {.beam = 2}});
  EXPECT_EQ(all[4].ids, Ids());
  EXPECT_EQ(all[4].score, 0);
  EXPECT_TRUE(translate_ids(m.model, {}, {}).empty());
}

TEST_F(TranslateIds, special_and_suppressed_ids_never_come) {
  const TranslateOptions options{.search = {.beam = 3, .suppressed = {1, 5, 6, 7}}};
  for (const Translation& t : translate_ids(m.model, sources, options)) {
    for (const int32_t id : t.ids) {
      EXPECT_TRUE(id == 4 || id > 7) << id;
    }
  }
}

TEST_F(TranslateIds, length_is_limited_and_the_end_forced) {
  const auto all = translate_ids(m.model, sources,
                                 {.search = {.beam = 2}, .longest_factor = 0, .longest_extra = 3});
  for (const Translation& t : all) EXPECT_LE(t.ids.size(), 2u);
}

// Where no end is forced, a translation that is cut has none that its score could count.
TEST_F(TranslateIds, score_is_log_p_over_the_penalty_of_the_length_that_is_told) {
  const TranslateOptions options{.search = {.beam = 3, .length_penalty = 0.7, .n_best = 3},
                                 .as_transformers = true,
                                 .longest_without_end = 4};
  size_t cut = 0, whole = 0;
  for (const Translation& best : translate_ids(m.model, sources, options)) {
    std::vector<Translation> all = best.others;
    all.push_back(best);
    for (const Translation& t : all) {
      const auto tokens = std::ssize(t.ids);
      ASSERT_LE(tokens, 4);
      const bool is_cut = t.length == tokens;
      EXPECT_EQ(t.length, is_cut ? 4 : tokens + 1);
      EXPECT_EQ(t.score, t.log_p / length_penalty(t.length, 0.7, LengthPenalty::power));
      ++(is_cut ? cut : whole);
    }
  }
  EXPECT_GT(cut, 0u);
  EXPECT_GT(whole, 0u);
}

TEST_F(TranslateIds, learned_positions_limit_the_length) {
  TransformerConfig c = small_config();
  c.position_embedding_type = "learned";
  c.max_position_embeddings = 9;
  const SmallModel learned(c);
  for (const Translation& t : translate_ids(learned.model, sources, {.search = {.beam = 2}})) {
    EXPECT_LE(t.ids.size(), 8u);
  }
}

TEST_F(TranslateIds, larger_beam_finds_likelier_translations) {
  const auto score = [&](int64_t beam) {
    double sum = 0;
    const TranslateOptions options{.search = {.beam = beam, .length_penalty = 0}};
    for (const Translation& t : translate_ids(m.model, sources, options)) sum += t.score;
    return sum;
  };
  EXPECT_GT(score(8), score(1));
}

TEST_F(TranslateIds, beam_or_batch_below_one_is_a_usage_error) {
  expect_error(ErrorKind::usage, {"num_beams is 0"},
               [&] { translate_ids(m.model, sources, {.search = {.beam = 0}}); });
  expect_error(ErrorKind::usage, {"batch_tokens is 0"},
               [&] { translate_ids(m.model, sources, {.batch_tokens = 0}); });
}

// Two tokens, 4 and 5, and the end, 3, with probabilities laid out by hand.
TEST(BeamSearch, two_hypotheses_beat_the_greedy_choice) {
  BeamSearch search({.beam = 2, .length_penalty = 0, .early_stopping = "true", .eos = {3}},
                    LengthPenalty::wu, 3);
  const auto p = [](int32_t id, double probability) {
    return NextToken{id, static_cast<float>(std::log(probability))};
  };
  const NextToken none;
  search.advance(std::vector<NextToken>{p(4, 0.5), p(5, 0.4), p(3, 0.1), none});
  ASSERT_EQ(search.live().size(), 2u);
  EXPECT_EQ(search.live()[0].ids, Ids{4});
  // After 4 the end has 0.5 (0.25 in all), after 5 it has 0.9 (0.36 in all).
  search.advance(std::vector<NextToken>{p(3, 0.5), p(4, 0.3), p(5, 0.2), none,  //
                                        p(3, 0.9), p(4, 0.06), p(5, 0.04), none});
  EXPECT_TRUE(search.live().empty());
  ASSERT_EQ(search.results().size(), 1u);
  EXPECT_EQ(search.results()[0].ids, Ids{5});
  EXPECT_NEAR(search.results()[0].score, std::log(0.36), 1e-6);
}

TEST(BeamSearch, end_outside_the_best_beam_candidates_is_passed_over) {
  BeamSearch search({.beam = 1, .length_penalty = 0, .early_stopping = "true", .eos = {3}},
                    LengthPenalty::wu, 9);
  search.advance(std::vector<NextToken>{{4, -0.5f}});
  EXPECT_EQ(search.live().size(), 1u);
  BeamSearch two({.beam = 2, .length_penalty = 0, .early_stopping = "true", .eos = {3}},
                 LengthPenalty::wu, 9);
  two.advance(std::vector<NextToken>{{4, -0.5f}, {5, -0.6f}, {3, -0.7f}, {6, -0.8f}});
  EXPECT_EQ(two.live().size(), 2u);
}

TEST(BeamSearch, equal_scores_keep_the_better_hypothesis_and_the_lower_rank_first) {
  BeamSearch search({.beam = 2, .length_penalty = 0, .early_stopping = "true", .eos = {3}},
                    LengthPenalty::wu, 9);
  search.advance(std::vector<NextToken>{{4, -1.0f}, {5, -1.0f}, {6, -1.0f}, {7, -1.0f}});
  ASSERT_EQ(search.live().size(), 2u);
  EXPECT_EQ(search.live()[0].ids, Ids{4});
  EXPECT_EQ(search.live()[1].ids, Ids{5});
}

TEST(LengthPenalty, equals_the_paper_at_a_few_points) {
  EXPECT_DOUBLE_EQ(length_penalty(1, 0.6), 1);
  EXPECT_DOUBLE_EQ(length_penalty(7, 1), 2);
  EXPECT_DOUBLE_EQ(length_penalty(19, 0.5), 2);
  EXPECT_DOUBLE_EQ(length_penalty(19, 0), 1);
}

}  // namespace
}  // namespace heddle::testing
