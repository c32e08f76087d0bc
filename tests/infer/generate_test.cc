// Greedy continuation over a cache: equal to whole passes, alone and in any batch.
#include "heddle/infer/generate.h"
#include "heddle/infer/precision.h"

#include <gtest/gtest.h>

#include "heddle/base/parallel.h"
#include "heddle/infer/best_words.h"
#include "heddle/models/gpt2.h"
#include "tests/base/temporary.h"
#include "tests/infer/small_models.h"

namespace heddle::testing {
namespace {

using Ids = std::vector<int32_t>;

Gpt2Config small_gpt2() {
  Gpt2Config c;
  c.vocab_size = 60, c.n_positions = 48, c.n_embd = 40, c.n_layer = 2, c.n_head = 4;
  c.initializer_range = 0.3;  // so that words differ
  return c;
}

struct SmallGpt2 {
  nn::Parameters parameters{5};
  Gpt2 model{nn::Scope(parameters), small_gpt2()};
};

Tensor whole_pass(const Gpt2& model, const Ids& ids, Precision precision) {
  const NoGrad off;
  nn::Run run;
  run.use(precision);
  const Segments one = Segments::uniform(1, static_cast<int64_t>(ids.size()));
  return model.hidden({.ids = ids, .segments = &one}, run);
}

// The plain definition: a whole pass for each word.
Ids plain_greedy(const Gpt2& model, Ids ids, int64_t words, Precision precision) {
  const size_t begin = ids.size();
  nn::Run run;
  run.use(precision);
  for (int64_t i = 0; i < words; ++i) {
    const Tensor h = whole_pass(model, ids, precision);
    const NoGrad off;
    ids.push_back(best_words(model.output()(h, run), {}).back().id);
  }
  return {ids.begin() + static_cast<int64_t>(begin), ids.end()};
}

const std::vector<Ids> kPrompts = {{3},
                                   {7, 8, 9, 10, 11, 12, 13},
                                   {20, 4},
                                   {3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3},
                                   {59, 0, 31, 5}};

class GenerateIn : public ::testing::TestWithParam<Precision> {};

TEST_P(GenerateIn, cached_states_equal_those_of_a_whole_pass_bit_for_bit) {
  const SmallGpt2 m;
  const Ids ids = {7, 8, 9, 10, 11, 12, 13, 14, 2, 2, 5, 41};
  const std::vector<float> whole = whole_pass(m.model, ids, GetParam()).to_floats();
  const NoGrad off;
  nn::Run run;
  run.use(GetParam());
  for (const std::vector<int64_t>& cuts : std::vector<std::vector<int64_t>>{
           {12}, {1, 11}, {5, 1, 1, 1, 4}, {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}}) {
    nn::WordCache cache(1, m.model.layers());
    std::vector<float> parts;
    int64_t at = 0;
    for (const int64_t n : cuts) {
      const Segments words = Segments::uniform(1, n);
      cache.extend(words);
      const std::vector<float> part = m.model
                                          .hidden({.ids = std::span(ids).subspan(at, n),
                                                   .segments = &words,
                                                   .places = cache.places(),
                                                   .cache = &cache},
                                                  run)
                                          .to_floats();
      parts.insert(parts.end(), part.begin(), part.end());
      at += n;
    }
    EXPECT_EQ(parts, whole);
  }
}

TEST_P(GenerateIn, equals_a_whole_pass_for_each_word) {
  const SmallGpt2 m;
  for (const Ids& prompt : kPrompts) {
    const Ids expected = plain_greedy(m.model, prompt, 12, GetParam());
    const std::vector<Ids> one = {prompt};
    EXPECT_EQ(generate_ids(m.model, one, {.max_new_tokens = 12, .precision = GetParam()})[0],
              expected);
    EXPECT_GT(std::set<int32_t>(expected.begin(), expected.end()).size(), 2u);  // no trivial text
  }
}

TEST_P(GenerateIn, batch_and_threads_change_nothing) {
  const SmallGpt2 m;
  const GenerateOptions options{.max_new_tokens = 20, .eos = 17, .precision = GetParam()};
  const std::vector<Ids> together = generate_ids(m.model, kPrompts, options);
  for (size_t i = 0; i < kPrompts.size(); ++i) {
    const std::vector<Ids> one = {kPrompts[i]};
    EXPECT_EQ(generate_ids(m.model, one, options)[0], together[i]) << i;
  }
  const int before = num_threads();
  for (const int threads : {1, 3}) {
    set_num_threads(threads);
    EXPECT_EQ(generate_ids(m.model, kPrompts, options), together);
  }
  set_num_threads(before);
}

INSTANTIATE_TEST_SUITE_P(Precisions, GenerateIn,
                         ::testing::Values(Precision(DType::f32), Precision(DType::bf16),
                                           Precision(DType::bf16, true)),
                         [](const auto& p) { return precision_name(p.param); });

TEST(Generate, ends_at_eos_which_is_not_among_the_words) {
  const SmallGpt2 m;
  const std::vector<Ids> prompts = {kPrompts[1]};
  const Ids all = generate_ids(m.model, prompts, {.max_new_tokens = 12})[0];
  const int32_t eos = all[5];
  const auto first = std::find(all.begin(), all.end(), eos);
  EXPECT_EQ(generate_ids(m.model, prompts, {.max_new_tokens = 12, .eos = eos})[0],
            Ids(all.begin(), first));
}

TEST(Generate, ends_where_the_positions_do) {
  const SmallGpt2 m;
  const std::vector<Ids> prompts = {Ids(47, 3), Ids(48, 3), {3}};
  const auto results = generate_ids(m.model, prompts, {.max_new_tokens = 100});
  // 48 positions are read; the word after the last is still known.
  EXPECT_EQ(results[0].size(), 2u);
  EXPECT_EQ(results[1].size(), 1u);
  EXPECT_EQ(results[2].size(), 48u);
}

TEST(Generate, suppressed_words_never_come) {
  const SmallGpt2 m;
  const std::vector<Ids> prompts = {kPrompts[1]};
  const Ids all = generate_ids(m.model, prompts, {.max_new_tokens = 12})[0];
  const Ids other =
      generate_ids(m.model, prompts, {.max_new_tokens = 12, .suppressed = {all[0]}})[0];
  EXPECT_EQ(std::count(other.begin(), other.end(), all[0]), 0);
}

TEST(Generate, no_words_wanted_gives_none) {
  const SmallGpt2 m;
  EXPECT_EQ(generate_ids(m.model, kPrompts, {.max_new_tokens = 0}),
            std::vector<Ids>(kPrompts.size()));
  EXPECT_TRUE(generate_ids(m.model, {}, {}).empty());
}

TEST(Generate, prompts_that_do_not_fit_are_data_errors) {
  const SmallGpt2 m;
  const auto generate = [&](Ids prompt) {
    const std::vector<Ids> prompts = {{1}, std::move(prompt)};
    generate_ids(m.model, prompts, {});
  };
  expect_error(ErrorKind::data, {"prompt 2 is empty"}, [&] { generate({}); });
  expect_error(ErrorKind::data, {"prompt 2 has 49 tokens", "48"}, [&] { generate(Ids(49, 1)); });
  expect_error(ErrorKind::data, {"the id 60", "60"}, [&] { generate({60}); });
  expect_error(ErrorKind::data, {"the id -1"}, [&] { generate({-1}); });
}

}  // namespace
}  // namespace heddle::testing
