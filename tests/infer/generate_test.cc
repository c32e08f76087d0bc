// Greedy continuation over a cache: equal to whole passes, alone and in any batch.
#include "heddle/infer/decoding/generate.h"
#include "heddle/infer/loading/loaded_model.h"

#include <gtest/gtest.h>

#include "heddle/base/parallel.h"
#include "heddle/infer/search/best_tokens.h"
#include "heddle/models/registry.h"
#include "tests/base/temporary.h"
#include "tests/infer/small_models.h"

namespace heddle::testing {
namespace {

using Ids = std::vector<int32_t>;

// Weights are large, so that tokens differ.
constexpr const char* kSmallGpt2 = R"({"model_type": "gpt2", "vocab_size": 60, "n_positions": 48,
  "n_embd": 40, "n_layer": 2, "n_head": 4, "initializer_range": 0.3})";

struct SmallGpt2 {
  nn::Parameters parameters{5};
  std::unique_ptr<Model> made = make_model(nn::Scope(parameters), Json::parse(kSmallGpt2));
  const LanguageModel& model = *made->as<LanguageModel>();
};

Tensor whole_pass(const LanguageModel& model, const Ids& ids, Precision precision) {
  const NoGrad off;
  nn::Run run;
  run.use(precision);
  const Segments one = Segments::uniform(1, static_cast<int64_t>(ids.size()));
  return model.hidden({.ids = ids, .segments = &one}, run);
}

// The plain definition: a whole pass for each token, over a window that begins anew from its last
// half when it is full.
Ids plain_greedy(const LanguageModel& model, Ids ids, int64_t tokens, Precision precision,
                 int64_t context = 1000) {
  const size_t begin = ids.size();
  int64_t first = 0;
  nn::Run run;
  run.use(precision);
  for (int64_t i = 0; i < tokens; ++i) {
    const auto n = static_cast<int64_t>(ids.size());
    if (n - first > context) first = n - std::max<int64_t>(1, context / 2);
    const Tensor h = whole_pass(model, {ids.begin() + first, ids.end()}, precision);
    const NoGrad off;
    ids.push_back(best_tokens(model.output()(h, run), {}).back().id);
  }
  return {ids.begin() + static_cast<int64_t>(begin), ids.end()};
}

// The tokens of the first continuation of each prompt.
std::vector<Ids> generated_ids(const LanguageModel& model, std::span<const Ids> prompts,
                               const GenerateOptions& options) {
  std::vector<Ids> tokens;
  for (const auto& found : generate_ids(model, prompts, options)) tokens.push_back(found[0].ids);
  return tokens;
}

const std::vector<Ids> kPrompts = {{3},
                                   {7, 8, 9, 10, 11, 12, 13},
                                   {20, 4},
                                   {3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3},
                                   {59, 0, 31, 5}};

// Bit for bit.
void expect_same(const std::vector<std::vector<Continuation>>& a,
                 const std::vector<std::vector<Continuation>>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    ASSERT_EQ(a[i].size(), b[i].size());
    for (size_t j = 0; j < a[i].size(); ++j) {
      EXPECT_EQ(a[i][j].ids, b[i][j].ids) << i << " " << j;
      EXPECT_EQ(a[i][j].log_ps, b[i][j].log_ps) << i << " " << j;
      EXPECT_EQ(a[i][j].score, b[i][j].score) << i << " " << j;
    }
  }
}

class GenerateIn : public ::testing::TestWithParam<Precision> {};

// Grouped heads and rotary positions; a window of five tokens; a mixture of experts.
constexpr const char* kSmallLlama = R"({"model_type": "llama", "vocab_size": 60,
  "max_position_embeddings": 48, "hidden_size": 40, "intermediate_size": 52,
  "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
  "initializer_range": 0.3})";
constexpr const char* kSmallMistral = R"({"model_type": "mistral", "vocab_size": 60,
  "max_position_embeddings": 48, "hidden_size": 40, "intermediate_size": 52,
  "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
  "initializer_range": 0.3, "sliding_window": 5})";
constexpr const char* kSmallQwen3 = R"({"model_type": "qwen3", "vocab_size": 60,
  "max_position_embeddings": 48, "hidden_size": 40, "intermediate_size": 52,
  "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 12,
  "initializer_range": 0.3, "use_sliding_window": true, "sliding_window": 5,
  "max_window_layers": 1})";
constexpr const char* kSmallMixtral = R"({"model_type": "mixtral", "vocab_size": 60,
  "max_position_embeddings": 48, "hidden_size": 40, "intermediate_size": 52,
  "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 1,
  "initializer_range": 0.3, "num_local_experts": 4})";

// A memory shorter than the text; another norm, biases of all layers together, a longer memory.
// Both look back equally far from each token: else a whole pass sees more of the empty memory.
constexpr const char* kSmallTransformerXl = R"({"model_type": "transfo-xl", "vocab_size": 60,
  "cutoffs": [20, 40], "d_model": 40, "d_embed": 32, "div_val": 2, "n_layer": 2, "n_head": 4,
  "d_head": 10, "d_inner": 52, "mem_len": 5, "clamp_len": 4, "init_std": 0.3})";
constexpr const char* kPreNormTransformerXl = R"({"model_type": "transfo-xl", "vocab_size": 60,
  "cutoffs": [], "d_model": 40, "d_embed": 40, "div_val": 1, "n_layer": 2, "n_head": 4,
  "d_head": 16, "d_inner": 52, "mem_len": 16, "pre_lnorm": true, "same_length": true,
  "untie_r": false, "init_std": 0.3})";

constexpr const char* kSmallRnn = R"({"model_type": "rnn_lm", "vocab_size": 60,
  "embedding_size": 24, "hidden_size": 40})";

void expect_cached_states_of_a_whole_pass(const LanguageModel& model, Precision precision) {
  const Ids ids = {7, 8, 9, 10, 11, 12, 13, 14, 2, 2, 5, 41};
  const std::vector<float> whole = whole_pass(model, ids, precision).to_floats();
  const NoGrad off;
  nn::Run run;
  run.use(precision);
  for (const std::vector<int64_t>& cuts : std::vector<std::vector<int64_t>>{
           {12}, {1, 11}, {5, 1, 1, 1, 4}, {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}}) {
    nn::KvCache cache(1, model.layers());
    std::vector<float> parts;
    int64_t at = 0;
    for (const int64_t n : cuts) {
      const Segments tokens = Segments::uniform(1, n);
      cache.extend(tokens);
      const std::vector<float> part = model
                                          .hidden({.ids = std::span(ids).subspan(at, n),
                                                   .segments = &tokens,
                                                   .position_ids = cache.position_ids(),
                                                   .cache = &cache},
                                                  run)
                                          .to_floats();
      parts.insert(parts.end(), part.begin(), part.end());
      at += n;
    }
    EXPECT_EQ(parts, whole);
  }
}

TEST_P(GenerateIn, cached_states_equal_those_of_a_whole_pass_bit_for_bit) {
  for (const char* config : {kSmallGpt2, kSmallLlama, kSmallMistral, kSmallQwen3, kSmallMixtral,
                             kSmallTransformerXl, kPreNormTransformerXl, kSmallRnn}) {
    SCOPED_TRACE(config);
    nn::Parameters parameters(5);
    const auto model = make_model(nn::Scope(parameters), Json::parse(config));
    expect_cached_states_of_a_whole_pass(*model->as<LanguageModel>(), GetParam());
  }
}

// Reads the ids 4 at a time, behind each some that are dropped again, and asks for the last `asked`
// of them.
void expect_answers_of_a_whole_pass(const LanguageModel& model, Precision precision,
                                    int64_t asked) {
  const Ids ids = {7, 8, 9, 10, 11, 12, 13, 14, 2, 2, 5, 41}, others = {3, 3, 50};
  const Tensor whole = whole_pass(model, ids, precision);
  const NoGrad off;
  nn::Run run;
  run.use(precision);
  nn::KvCache cache(2, model.layers());  // of two sequences, the other one shorter
  for (int64_t at = 0; at < 12; at += 4) {
    Ids read(ids.begin() + at, ids.begin() + at + 4);
    const auto pass = [&](const std::vector<int64_t>& lengths, std::vector<int64_t> answers) {
      const Segments tokens = Segments::from_lengths(lengths);
      cache.extend(tokens);
      return model.hidden({.ids = read,
                           .segments = &tokens,
                           .position_ids = cache.position_ids(),
                           .cache = &cache,
                           .answers = answers},
                          run);
    };
    read.insert(read.end(), ids.begin() + at, ids.begin() + at + 2);
    const Tensor h = pass({4, 2}, {asked, 1});
    ASSERT_EQ(h.size(0), asked + 1);
    EXPECT_EQ(h.slice(0, 0, asked).to_contiguous().to_floats(),
              whole.slice(0, at + 4 - asked, asked).to_contiguous().to_floats());
    read = others;
    read.push_back(9);
    pass({3, 1}, {1, 1});
    cache.drop_last(std::vector<int64_t>{3, 1});
  }
  EXPECT_EQ(cache.rows(), 12 + 6);
}

TEST_P(GenerateIn, answers_alone_have_the_bits_of_a_whole_pass_and_what_is_dropped_leaves_none) {
  for (const char* config : {kSmallGpt2, kSmallLlama, kSmallMistral, kSmallQwen3, kSmallMixtral,
                             kSmallTransformerXl, kPreNormTransformerXl, kSmallRnn}) {
    SCOPED_TRACE(config);
    nn::Parameters parameters(5);
    const auto model = make_model(nn::Scope(parameters), Json::parse(config));
    for (const int64_t asked : {1, 2, 4}) {
      expect_answers_of_a_whole_pass(*model->as<LanguageModel>(), GetParam(), asked);
    }
  }
}

TEST_P(GenerateIn, drafts_change_no_bit_and_save_passes) {
  for (const char* config : {kSmallGpt2, kSmallLlama}) {
    nn::Parameters parameters(5);
    const auto made = make_model(nn::Scope(parameters), Json::parse(config));
    const LanguageModel& model = *made->as<LanguageModel>();
    int64_t accepted = 0;
    for (const bool samples : {false, true}) {
      GenerateOptions o{
          .search = {.max_new_tokens = 70}, .context = 20, .scores = true, .precision = GetParam()};
      o.search.samples = samples;
      if (samples) o.search.temperature = 0.3, o.search.n_best = 2;
      const auto plain = generate_ids(model, kPrompts, o);
      o.search.drafted = 5;
      const auto drafted = generate_ids(model, kPrompts, o);
      expect_same(drafted, plain);
      for (const auto& found : drafted) accepted += found[0].accepted;
    }
    EXPECT_GT(accepted, 0);
  }
}

TEST_P(GenerateIn, equals_a_whole_pass_for_each_token) {
  const SmallGpt2 m;
  for (const Ids& prompt : kPrompts) {
    const Ids expected = plain_greedy(m.model, prompt, 12, GetParam());
    const std::vector<Ids> one = {prompt};
    EXPECT_EQ(
        generated_ids(m.model, one, {.search = {.max_new_tokens = 12}, .precision = GetParam()})[0],
        expected);
    EXPECT_GT(std::set<int32_t>(expected.begin(), expected.end()).size(), 2u);  // no trivial text
  }
}

TEST_P(GenerateIn, window_that_slides_equals_a_whole_pass_over_what_it_holds) {
  for (const char* config : {kSmallGpt2, kSmallLlama}) {
    nn::Parameters parameters(5);
    const auto made = make_model(nn::Scope(parameters), Json::parse(config));
    const LanguageModel& model = *made->as<LanguageModel>();
    for (const int64_t context : {0, 17, 4, 1}) {
      for (const Ids& prompt : kPrompts) {
        if (context > 0 && std::ssize(prompt) > context) continue;
        const int64_t tokens = context == 0 ? 80 : 40;
        const std::vector<Ids> one = {prompt};
        EXPECT_EQ(generated_ids(model, one,
                                {.search = {.max_new_tokens = tokens},
                                 .context = context,
                                 .precision = GetParam()})[0],
                  plain_greedy(model, prompt, tokens, GetParam(), context == 0 ? 48 : context))
            << config << " " << context;
      }
    }
  }
}

TEST_P(GenerateIn, windows_that_slide_together_are_those_of_each_alone) {
  const SmallGpt2 m;
  for (const char* way : {"greedy", "beam", "samples"}) {
    GenerateOptions options{
        .search = {.max_new_tokens = 30}, .context = 18, .scores = true, .precision = GetParam()};
    if (way == std::string("beam")) options.search.beam = options.search.n_best = 3;
    if (way == std::string("samples")) {
      options.search.n_best = 2;
      options.search.samples = true;
      options.search.seed = 9;
    }
    const auto together = generate_ids(m.model, kPrompts, options);
    for (size_t i = 0; i < kPrompts.size(); ++i) {
      const std::vector<Ids> one = {kPrompts[i]};
      GenerateOptions alone = options;
      alone.search.first_line += static_cast<int64_t>(i);
      EXPECT_EQ(together[i][0].ids.size(), 30u);
      EXPECT_FALSE(together[i][0].has_no_room);
      expect_same({generate_ids(m.model, one, alone)[0]}, {together[i]});
    }
  }
}

TEST(Generate, text_that_does_not_slide_ends_where_the_context_is_full) {
  const SmallGpt2 m;
  const auto found = generate_ids(
      m.model, kPrompts, {.search = {.max_new_tokens = 20}, .context = 18, .slides = false});
  for (size_t i = 0; i < kPrompts.size(); ++i) {
    // The token behind the last position is known.
    const size_t room = 18 - kPrompts[i].size() + 1;
    EXPECT_EQ(found[i][0].ids.size(), std::min<size_t>(20, room));
    EXPECT_EQ(found[i][0].ended, EndedBy::length);
    EXPECT_EQ(found[i][0].has_no_room, room < 20);
  }
  expect_error(ErrorKind::usage, {"context is 49", "1 to 48"},
               [&] { generate_ids(m.model, kPrompts, {.context = 49}); });
  expect_error(ErrorKind::data, {"prompt 4 has 17 tokens; the model takes 16 at most"},
               [&] { generate_ids(m.model, kPrompts, {.context = 16}); });
}

TEST_P(GenerateIn, batch_and_threads_change_nothing) {
  const SmallGpt2 m;
  GenerateOptions options{
      .search = {.max_new_tokens = 20, .eos = {17}}, .scores = true, .precision = GetParam()};
  const int before = num_threads();
  for (const char* way : {"greedy", "beam", "samples"}) {
    if (way == std::string("beam")) options.search.beam = options.search.n_best = 3;
    if (way == std::string("samples")) {
      options.search.beam = 1, options.search.seed = 9, options.search.samples = true;
    }
    const auto together = generate_ids(m.model, kPrompts, options);
    for (size_t i = 0; i < kPrompts.size(); ++i) {
      const std::vector<Ids> one = {kPrompts[i]};
      GenerateOptions alone = options;
      alone.search.first_line += static_cast<int64_t>(i);
      expect_same({generate_ids(m.model, one, alone)[0]}, {together[i]});
    }
    for (const int64_t batch_tokens : {1, 90, 200}) {  // prompts are read while others go on
      GenerateOptions smaller = options;
      smaller.batch_tokens = batch_tokens;
      expect_same(generate_ids(m.model, kPrompts, smaller), together);
    }
    for (const int threads : {1, 3}) {
      set_num_threads(threads);
      expect_same(generate_ids(m.model, kPrompts, options), together);
    }
    set_num_threads(before);
  }
}

INSTANTIATE_TEST_SUITE_P(Precisions, GenerateIn,
                         ::testing::Values(Precision(DType::f32), Precision(DType::bf16),
                                           Precision(DType::bf16, true)),
                         [](const auto& p) { return precision_name(p.param); });

TEST(Generate, ends_at_eos_which_is_not_among_the_tokens) {
  const SmallGpt2 m;
  const std::vector<Ids> prompts = {kPrompts[1]};
  const Ids all = generated_ids(m.model, prompts, {.search = {.max_new_tokens = 12}})[0];
  const int32_t eos = all[5];
  const auto first = std::find(all.begin(), all.end(), eos);
  EXPECT_EQ(generated_ids(m.model, prompts, {.search = {.max_new_tokens = 12, .eos = {eos}}})[0],
            Ids(all.begin(), first));
}

TEST(Generate, ends_where_the_positions_do) {
  const SmallGpt2 m;
  const std::vector<Ids> prompts = {Ids(47, 3), Ids(48, 3), {3}};
  const auto results =
      generated_ids(m.model, prompts, {.search = {.max_new_tokens = 100}, .slides = false});
  // 48 positions are read; the token after the last is still known.
  EXPECT_EQ(results[0].size(), 2u);
  EXPECT_EQ(results[1].size(), 1u);
  EXPECT_EQ(results[2].size(), 48u);
}

TEST(Generate, suppressed_tokens_never_come) {
  const SmallGpt2 m;
  const std::vector<Ids> prompts = {kPrompts[1]};
  const Ids all = generated_ids(m.model, prompts, {.search = {.max_new_tokens = 12}})[0];
  const Ids other = generated_ids(m.model, prompts,
                                  {.search = {.max_new_tokens = 12, .suppressed = {all[0]}}})[0];
  EXPECT_EQ(std::count(other.begin(), other.end(), all[0]), 0);
}

TEST(Generate, no_prompts_give_nothing) {
  const SmallGpt2 m;
  EXPECT_TRUE(generated_ids(m.model, {}, {}).empty());
}

// Each token's log p is that of a whole pass; so is the sum.
TEST(Generate, log_p_is_that_of_a_whole_pass) {
  const SmallGpt2 m;
  const std::vector<Ids> prompts = {kPrompts[1]};
  for (const int64_t beam : {1, 4}) {
    const Continuation c = generate_ids(
        m.model, prompts, {.search = {.max_new_tokens = 9, .beam = beam}, .scores = true})[0][0];
    Ids all = kPrompts[1];
    all.insert(all.end(), c.ids.begin(), c.ids.end());
    const Tensor logits = m.model.output()(whole_pass(m.model, all, {}), {});
    double sum = 0;
    for (size_t i = 0; i < c.ids.size(); ++i) {
      const auto row = static_cast<int64_t>(kPrompts[1].size() + i) - 1;
      const float log_p =
          scale_of_row(logits.rows(), row).log_p(logits.rows().row<float>(row)[c.ids[i]]);
      EXPECT_EQ(c.log_ps[i], log_p) << i;
      sum += log_p;
    }
    EXPECT_NEAR(c.log_p, sum, 1e-9);
    EXPECT_NEAR(c.score, sum / 9, 1e-9);
  }
}

TEST(Generate, samples_come_as_often_as_the_distribution_says) {
  const SmallGpt2 m;
  const std::vector<Ids> prompts = {kPrompts[1]};
  const Tensor logits = m.model.output()(whole_pass(m.model, kPrompts[1], {}), {});
  const int64_t last = logits.size(0) - 1, n = 8000;
  const SearchConfig search{.max_new_tokens = 1,
                            .temperature = 1.5,
                            .top_k = 12,
                            .seed = 4,
                            .n_best = n,
                            .samples = true};
  std::vector<double> p(60);
  double sum = 0;
  for (const NextToken& w :
       best_tokens(logits.slice(0, last, 1), {.count = 12})) {  // p of the 12 likeliest
    sum += p[w.id] = std::exp(w.log_p / *search.temperature);
  }
  std::vector<int64_t> counts(60);
  const auto found = generate_ids(m.model, prompts, {.search = search});
  for (const Continuation& c : found[0]) ++counts[c.ids[0]];
  for (size_t i = 0; i < p.size(); ++i) {
    const double expected = p[i] / sum, deviation = std::sqrt(expected * (1 - expected) / n);
    EXPECT_NEAR(static_cast<double>(counts[i]) / n, expected, 4 * deviation) << i;
  }
}

TEST(Generate, sample_i_is_the_same_however_many_there_are) {
  const SmallGpt2 m;
  GenerateOptions options{
      .search = {.max_new_tokens = 12, .seed = 3, .n_best = 5, .samples = true}};
  const auto five = generate_ids(m.model, kPrompts, options);
  options.search.n_best = 2;
  const auto two = generate_ids(m.model, kPrompts, options);
  for (size_t i = 0; i < kPrompts.size(); ++i) {
    for (size_t j = 0; j < 2; ++j) EXPECT_EQ(two[i][j].ids, five[i][j].ids);
    EXPECT_NE(five[i][0].ids, five[i][1].ids);
  }
}

TEST(Generate, on_token_sees_each_token_in_order_and_ends_a_sequence) {
  const SmallGpt2 m;
  const std::vector<Ids> whole =
      generated_ids(m.model, kPrompts, {.search = {.max_new_tokens = 10}});
  std::vector<Ids> seen(kPrompts.size());
  std::vector<int64_t> done;
  const auto found =
      generate_ids(m.model, kPrompts,
                   {.search = {.max_new_tokens = 10},
                    .on_token =
                        [&](const NewToken& w) {
                          seen[w.prompt].push_back(w.tokens.back());
                          EXPECT_EQ(seen[w.prompt], Ids(w.tokens.begin(), w.tokens.end()));
                          return w.prompt != 2 || w.tokens.size() < 4;
                        },
                    .on_done = [&](int64_t prompt, const auto&) { done.push_back(prompt); }});
  EXPECT_EQ(done, (std::vector<int64_t>{2, 0, 1, 3, 4}));
  for (size_t i = 0; i < kPrompts.size(); ++i) {
    const size_t tokens = i == 2 ? 4 : 10;
    EXPECT_EQ(found[i][0].ids, Ids(whole[i].begin(), whole[i].begin() + tokens));
    EXPECT_EQ(found[i][0].ended, i == 2 ? EndedBy::stop : EndedBy::length);
    EXPECT_EQ(seen[i], found[i][0].ids);
  }
}

TEST(Generate, options_outside_their_range_are_usage_errors) {
  const SmallGpt2 m;
  const auto refused = [&](const std::string& message, const GenerateOptions& options) {
    expect_error(ErrorKind::usage, {message}, [&] { generate_ids(m.model, kPrompts, options); });
  };
  refused("max_new_tokens is 0", {.search = {.max_new_tokens = 0}});
  refused("max_new_tokens is -1", {.search = {.max_new_tokens = -1}});
  refused("num_beams is 0", {.search = {.beam = 0}});
  refused("num_beams 2", {.search = {.beam = 2, .samples = true}});
  refused("n_best is 3 but num_beams 2", {.search = {.beam = 2, .n_best = 3}});
  refused("batch_tokens is 0", {.batch_tokens = 0});
  refused("temperature is -1", {.search = {.temperature = -1, .samples = true}});
  refused("no_repeat_ngram_size is -1", {.search = {.no_repeat_ngram = -1}});
}

TEST(Generate, number_of_likely_tokens_below_0_is_a_usage_error) {
  const SmallGpt2 m;
  expect_error(ErrorKind::usage, {"-1 tokens"},
               [&] { likely_next_tokens(m.model, kPrompts, -1, {}); });
  EXPECT_TRUE(likely_next_tokens(m.model, kPrompts, 0, {})[0].empty());
}

TEST(Generate, model_that_does_not_predict_the_next_token_is_a_data_error) {
  nn::Parameters parameters(5);
  const auto bert = make_model(nn::Scope(parameters), Json::parse(R"({"model_type": "bert",
      "vocab_size": 60, "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2,
      "intermediate_size": 24, "max_position_embeddings": 24})"));
  expect_error(ErrorKind::data, {"predicts the next token", "bert"},
               [&] { generate_ids(*bert->as<TokenModel>(), kPrompts, {}); });
}

TEST(Generate, prompts_that_do_not_fit_are_data_errors) {
  const SmallGpt2 m;
  const auto generate = [&](Ids prompt) {
    const std::vector<Ids> prompts = {{1}, std::move(prompt)};
    generated_ids(m.model, prompts, {});
  };
  expect_error(ErrorKind::data, {"prompt 2 is empty"}, [&] { generate({}); });
  expect_error(ErrorKind::data, {"prompt 2 has 49 tokens", "48"}, [&] { generate(Ids(49, 1)); });
  expect_error(ErrorKind::data, {"the id 60", "60"}, [&] { generate({60}); });
  expect_error(ErrorKind::data, {"the id -1"}, [&] { generate({-1}); });
}

}  // namespace
}  // namespace heddle::testing
