// A language model with segment memory: what it remembers gives what the whole text gives.
#include <gtest/gtest.h>

#include "heddle/infer/decoding/generate.h"
#include "heddle/infer/perplexity.h"
#include "heddle/infer/search/best_tokens.h"
#include "heddle/models/registry.h"
#include "heddle/nn/relative/relative_rows.h"
#include "tests/base/temporary.h"

namespace heddle::testing {
namespace {

using Ids = std::vector<int32_t>;

// Weights are large, so that tokens differ; tokens 20 on are two groups of the adaptive softmax.
struct SmallXl {
  nn::Parameters parameters{5};
  std::unique_ptr<Model> made;
  const LanguageModel* model;

  explicit SmallXl(int64_t mem_len, bool same_length, bool pre_lnorm = false) {
    Json config = Json::parse(R"({"model_type": "transfo-xl", "vocab_size": 60, "d_model": 24,
      "d_embed": 24, "n_head": 3, "d_head": 8, "d_inner": 40, "n_layer": 2, "div_val": 2,
      "cutoffs": [20, 40], "init_std": 0.3, "proj_init_std": 0.3})");
    config["mem_len"] = mem_len;
    config["same_length"] = same_length;
    config["pre_lnorm"] = pre_lnorm;
    made = make_model(nn::Scope(parameters), config);
    model = made->as<LanguageModel>();
  }
};

Ids long_text() {
  Ids ids;
  uint32_t random = 3;
  for (int i = 0; i < 43; ++i) {
    random = random * 1664525 + 1013904223;
    ids.push_back(static_cast<int32_t>((random >> 16) % 60));
  }
  return ids;
}

// log p of each token but the first by one pass over the whole text.
double whole_nll(const LanguageModel& model, const Ids& ids) {
  return likelihood_of_text(model, ids, {.context = static_cast<int64_t>(ids.size())}).nll;
}

// Where each token sees the same number of tokens, memory makes segments as good as the whole text.
TEST(Memory, segments_of_any_length_give_the_likelihood_of_the_whole_text) {
  for (const bool pre_lnorm : {false, true}) {
    const SmallXl xl(7, true, pre_lnorm);
    const double whole = whole_nll(*xl.model, long_text());
    for (const int64_t context : {2, 5, 7, 20}) {
      const TextLikelihood parts = likelihood_of_text(*xl.model, long_text(), {.context = context});
      EXPECT_NEAR(parts.nll, whole, 1e-5 * whole) << context;
      EXPECT_EQ(parts.tokens, 42);
      EXPECT_EQ(parts.memory, 7);
      EXPECT_EQ(parts.windows, (42 + context - 1) / context);
    }
  }
}

TEST(Memory, segments_without_it_are_texts_of_their_own) {
  const SmallXl xl(7, true);
  const Ids ids = long_text();
  double each = 0;
  for (size_t at = 0; at + 1 < ids.size(); at += 5) {
    const size_t end = std::min(at + 6, ids.size());
    each += whole_nll(*xl.model, Ids(ids.begin() + at, ids.begin() + end));
  }
  const TextLikelihood parts = likelihood_of_text(*xl.model, ids, {.context = 5, .memory = false});
  EXPECT_NEAR(parts.nll, each, 1e-5 * each);
  EXPECT_EQ(parts.memory, 0);
  EXPECT_EQ(
      likelihood_of_text(*xl.model, ids, {.context = 5, .memory = false, .batch_tokens = 1}).nll,
      parts.nll);
  EXPECT_GT(std::abs(parts.nll - whole_nll(*xl.model, ids)), 1e-3 * each);
}

TEST(Memory, default_segment_is_as_long_as_the_memory) {
  const Ids ids = long_text();
  EXPECT_EQ(likelihood_of_text(*SmallXl(7, true).model, ids, {}).context, 7);
  EXPECT_EQ(likelihood_of_text(*SmallXl(0, false).model, ids, {}).context, 512);
}

TEST(Memory, options_that_make_no_sense_are_usage_errors) {
  const SmallXl xl(7, true);
  expect_error(ErrorKind::usage, {"stride is 3", "context"},
               [&] { likelihood_of_text(*xl.model, long_text(), {.context = 5, .stride = 3}); });
  expect_error(ErrorKind::usage, {"context is 1"},
               [&] { likelihood_of_text(*xl.model, long_text(), {.context = 1}); });
}

// The plain definition: the prompt in one pass, then a pass for each token over the memory.
Ids plain_greedy(const LanguageModel& model, Ids ids, int64_t tokens) {
  const NoGrad off;
  const nn::Run run;
  nn::Memory memory;
  Ids found;
  for (int64_t i = 0; i < tokens; ++i) {
    const Segments one = Segments::uniform(1, static_cast<int64_t>(ids.size()));
    const Tensor h = model.hidden({.ids = ids, .segments = &one, .memory = &memory}, run);
    ids = {best_tokens(model.output()(h, run), {}).back().id};
    found.push_back(ids[0]);
  }
  return found;
}

const std::vector<Ids> kPrompts = {{3}, {7, 8, 9, 10, 11, 12, 13, 50, 51, 52}, {20, 4}};

TEST(Memory, generation_equals_a_pass_for_each_token_over_the_memory) {
  for (const bool same_length : {false, true}) {
    for (const bool pre_lnorm : {false, true}) {
      const SmallXl xl(6, same_length, pre_lnorm);
      const auto found = generate_ids(*xl.model, kPrompts, {.search = {.max_new_tokens = 15}});
      for (size_t i = 0; i < kPrompts.size(); ++i) {
        EXPECT_EQ(found[i][0].ids, plain_greedy(*xl.model, kPrompts[i], 15)) << i;
      }
      EXPECT_GT(std::set<int32_t>(found[1][0].ids.begin(), found[1][0].ids.end()).size(), 2u);
    }
  }
}

// The whole text again for each token.
TEST(Memory, generation_equals_feeding_the_whole_text_again) {
  for (const auto& [mem_len, same_length] : {std::pair<int64_t, bool>{6, true}, {0, false}}) {
    const SmallXl xl(mem_len, same_length);
    const auto found =
        generate_ids(*xl.model, kPrompts, {.search = {.max_new_tokens = 15}, .scores = true});
    for (size_t i = 0; i < kPrompts.size(); ++i) {
      const Continuation& c = found[i][0];
      Ids all = kPrompts[i];
      for (size_t n = 0; n < c.ids.size(); ++n) {
        const NoGrad off;
        const Segments one = Segments::uniform(1, static_cast<int64_t>(all.size()));
        const Tensor h = xl.model->hidden({.ids = all, .segments = &one}, {});
        const NextToken next = best_tokens(xl.model->output()(h, {}), {}).back();
        EXPECT_EQ(next.id, c.ids[n]) << mem_len << " " << i << " " << n;
        EXPECT_NEAR(next.log_p, c.log_ps[n], 1e-4);
        all.push_back(c.ids[n]);
      }
    }
  }
}

}  // namespace
}  // namespace heddle::testing
