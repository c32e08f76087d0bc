// The length penalty that held-out sentences choose, and where it is kept.
#include "heddle/train/tasks/search_tuning.h"

#include <gtest/gtest.h>

#include "heddle/infer/decoding/translate.h"
#include "tests/support/places.h"
#include "tests/train/pair_run.h"

namespace heddle::train {
namespace {

TranslateOptions with_beam(const LoadedModel& model, int64_t beam) {
  TranslateOptions options = default_options(model);
  options.search.beam = beam;
  return options;
}

class SearchTuning : public PairRun {
 protected:
  std::string tuned(int64_t beam, int64_t updates) {
    TrainConfig config = testing::small_config();
    set_from_string(config, "tuned_beam", std::to_string(beam));
    config.max_updates = config.validate_every = updates;
    train(config, "run");
    return folder_ / "run/best";
  }
};

TEST_F(SearchTuning, is_kept_with_the_best_model_and_its_figures_are_those_of_a_search) {
  const LoadedModel model = load_translation_model(tuned(3, 120));
  ASSERT_TRUE(model.generation.has_value());
  EXPECT_EQ(model.generation->beam, 3);
  const double alpha = model.generation->length_penalty.value();
  const auto references = lines("data/val.de");
  const auto sources = line_ids(model, source_ids, lines("data/val.en"), {});
  dist::LocalGroup alone;
  const TunedSearch found = tune_search(model, sources, references, with_beam(model, 3), alone);
  EXPECT_DOUBLE_EQ(found.length_penalty, alpha);
  EXPECT_GT(found.bleu.half_width, 0);
  TranslateOptions plain = default_options(model);
  plain.search.beam = 3;
  plain.search.length_penalty = 1;
  std::vector<std::string> texts;
  for (const Translation& t : translate_ids(model.translator(), sources, plain)) {
    texts.push_back(model.target().decode(t.ids));
  }
  EXPECT_DOUBLE_EQ(found.bleu_at_1, corpus_bleu(texts, references).score);
}

TEST(LengthPenalties, longer_texts_win_where_they_are_the_right_ones) {
  // By length^alpha -2 / 4^a against -3 / 8^a: the longer one wins from 2^a > 1.5, a > .585.
  const std::vector<std::vector<EndedText>> sentences(6,
                                                      {{"a b c", -2, 4}, {"a b c d e f g", -3, 8}});
  const std::vector<std::string> longer(6, "a b c d e f g"), shorter(6, "a b c");
  const TunedSearch right = choose_length_penalty(sentences, longer, LengthPenalty::power);
  EXPECT_GE(right.length_penalty, 0.6);
  EXPECT_NEAR(right.bleu.score, 100, 1e-9);
  const std::vector<std::vector<EndedText>> four(6, {{"a b c d", -2, 4}, {"a b c d e f g", -3, 8}});
  const TunedSearch low =
      choose_length_penalty(four, std::vector<std::string>(6, "a b c d"), LengthPenalty::power);
  EXPECT_LE(low.length_penalty, 0.5);
  EXPECT_NEAR(low.bleu.score, 100, 1e-9);
  EXPECT_LT(low.bleu_at_1, 90);
}

// About half of the sentences want their longer text: which penalty is best is chance, and 1
// remains.
TEST(LengthPenalties, what_chance_may_have_gained_changes_nothing) {
  std::vector<std::vector<EndedText>> sentences;
  std::vector<std::string> mixed, longer;
  for (int i = 0; i < 60; ++i) {
    // By length^a -2 / 4^a against -5 / 8^a: the longer one wins from 2^a > 2.5, a > 1.32.
    sentences.push_back(
        {{fmt::format("a b c {}", i), -2, 4}, {fmt::format("a b c {} e f g", i), -5, 8}});
    const bool is_longer = i % 2 == 0;
    mixed.push_back(sentences.back()[is_longer ? 1 : 0].text);
    longer.push_back(sentences.back()[1].text);
  }
  mixed[1] = sentences[1][1].text;
  const TunedSearch by_chance = choose_length_penalty(sentences, mixed, LengthPenalty::power);
  EXPECT_DOUBLE_EQ(by_chance.length_penalty, 1);
  EXPECT_DOUBLE_EQ(by_chance.bleu.score, by_chance.bleu_at_1);
  const TunedSearch sure = choose_length_penalty(sentences, longer, LengthPenalty::power);
  EXPECT_NEAR(sure.length_penalty, 1.4, 1e-9);  // the nearest to 1 of those that choose the longer
  EXPECT_GT(sure.bleu.score, sure.bleu_at_1 + 20);
}

// A model of transformers without a forced end: what is cut has no end that its length counts.
TEST(TunedSearch, weighs_what_was_cut_by_the_length_that_its_score_was_over) {
  LoadedModel model = load_translation_model(std::string(testing::kFixtures) + "/marian/opus");
  for (auto& p : model.parameters.all()) {  // else it never ends
    if (p->name() != "final_logits_bias") continue;
    p->value().data<float>()[0] += 3;
    p->changed(true);
  }
  model.generation = SearchConfig{.max_new_tokens = 5, .banned = {{84}}};
  std::vector<std::vector<int32_t>> sources;
  for (int32_t i = 0; i < 30; ++i) sources.push_back({2 + i, 40 - i, 3 + i * i % 50, 0});
  TranslateOptions options = default_options(model);
  options.search.beam = options.search.n_best = 4;
  options.search.length_penalty = 1;
  std::vector<std::vector<EndedText>> sentences;
  std::vector<std::string> references;
  size_t cut = 0, whole = 0;
  for (const Translation& best : translate_ids(model.translator(), sources, options)) {
    std::vector<EndedText>& all = sentences.emplace_back();
    const auto add = [&](const Translation& t) {
      all.push_back({model.target().decode(t.ids), t.log_p, t.length});
      ++(t.length == std::ssize(t.ids) ? cut : whole);
    };
    add(best);
    for (const Translation& t : best.others) add(t);
    references.push_back(all[sources.size() % 2 + sentences.size() % 3].text);
  }
  EXPECT_GT(cut, 0u);
  EXPECT_GT(whole, 0u);
  const TunedSearch expected = choose_length_penalty(sentences, references, LengthPenalty::power);
  dist::LocalGroup alone;
  const TunedSearch found = tune_search(model, sources, references, with_beam(model, 4), alone);
  EXPECT_EQ(found.length_penalty, expected.length_penalty);
  EXPECT_EQ(found.bleu.mean, expected.bleu.mean);
  EXPECT_EQ(found.bleu_at_1, expected.bleu_at_1);
}

TEST(SavedSearch, keeps_what_config_json_said_of_the_search) {
  const TemporaryFolder folder;
  folder.write(
      "config.json",
      R"({"model_type": "marian", "d_model": 8, "max_length": 40, "bad_words_ids": [[7]]})");
  save_search(folder.path(), {.beam = 3, .length_penalty = 0.4});
  const SearchConfig search = read_generation_config(folder.path());
  EXPECT_EQ(search.max_length, 40);
  EXPECT_EQ(search.banned, (std::vector<std::vector<int64_t>>{{7}}));
  EXPECT_EQ(search.beam, 3);
  EXPECT_EQ(search.length_penalty, 0.4);
  EXPECT_FALSE(Json::load(folder / "generation_config.json").contains("d_model"));
}

TEST_F(SearchTuning, threads_change_nothing) {
  const LoadedModel model = load_translation_model(tuned(0, 60));
  EXPECT_FALSE(model.generation->beam.has_value());
  const auto sources = line_ids(model, source_ids, lines("data/val.en"), {});
  dist::LocalGroup alone;
  const int before = num_threads();
  set_num_threads(1);
  const TunedSearch one =
      tune_search(model, sources, lines("data/val.de"), with_beam(model, 4), alone);
  set_num_threads(3);
  const TunedSearch three =
      tune_search(model, sources, lines("data/val.de"), with_beam(model, 4), alone);
  set_num_threads(before);
  EXPECT_EQ(one.length_penalty, three.length_penalty);
  EXPECT_EQ(one.bleu.mean, three.bleu.mean);
}

}  // namespace
}  // namespace heddle::train
