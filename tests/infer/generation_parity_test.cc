// Greedy and beam search and the rules against transformers' generate() in float64.
#include <gtest/gtest.h>

#include "heddle/infer/decoding/generate.h"
#include "heddle/infer/perplexity.h"
#include "heddle/io/safetensors.h"
#include "heddle/models/registry.h"
#include "tests/support/places.h"

namespace heddle::testing {
namespace {

using Ids = std::vector<int32_t>;

Ids ids_of(const Json& json) {
  const std::vector<int64_t> values = json.as_ints();
  return {values.begin(), values.end()};
}

const std::string kFolder = std::string(kFixtures) + "/generate";

struct Loaded {
  nn::Parameters parameters;
  std::unique_ptr<Model> model;
};

struct Fixture {
  SafetensorsFile file;
  Json json;
  std::vector<Ids> prompts;

  Fixture(const std::string& weights, const std::string& cases)
      : file(SafetensorsFile::open(kFolder + "/" + weights)),
        json(Json::load(kFolder + "/" + cases)) {
    for (const Json& prompt : json.at("prompts").as_array()) prompts.push_back(ids_of(prompt));
  }

  // With keys of its config changed; null: none.
  Loaded load(const Json* changes = nullptr) const {
    Json config = Json::parse(file.metadata().at("config"));
    if (changes != nullptr) {
      for (const auto& [key, value] : changes->as_object()) config[key] = value;
    }
    Loaded loaded{nn::Parameters::to_be_loaded(file.elements(), file.path()), nullptr};
    loaded.model = make_model(nn::Scope(loaded.parameters), config);
    loaded.parameters.load(file, loaded.model->names());
    return loaded;
  }
};

GenerateOptions options_of(const Json& json) {
  GenerateOptions o{.search = {.eos = {1}}, .scores = true};
  const auto others = read_search(o.search, json, "options");
  for (const std::string& key : others) {
    if (key == "num_return_sequences") o.search.n_best = json.get_int(key);
  }
  return o;
}

// The tokens with the end, which fixtures hold but continuations do not.
Ids tokens_of(const Continuation& c, const Ids& expected) {
  Ids ids = c.ids;
  if (c.ended == EndedBy::eos && !expected.empty()) ids.push_back(expected.back());
  return ids;
}

struct Counts {
  size_t tokens = 0, ends = 0;
};

// Scores are sums of 14 log p in f32.
void expect_results(const Fixture& f, const Model& any, const Json& one, Counts& counts,
                    int64_t batch_tokens = 8192) {
  const auto& model = any.need<TokenModel>("test");
  const std::string name = one.at("options").dump();
  GenerateOptions options = options_of(one.at("options"));
  options.batch_tokens = batch_tokens;
  const auto ours = generate_ids(model, f.prompts, options);
  for (size_t p = 0; p < f.prompts.size(); ++p) {
    const Json::Array& expected = one.at("results").as_array()[p].as_array();
    ASSERT_EQ(ours[p].size(), expected.size()) << name << " prompt " << p;
    for (size_t i = 0; i < expected.size(); ++i) {
      const Ids ids = ids_of(expected[i].at("ids"));
      EXPECT_EQ(tokens_of(ours[p][i], ids), ids) << name << " prompt " << p;
      const bool has_end = contains(options.search.ends(), ids.back());
      EXPECT_EQ(ours[p][i].ended == EndedBy::eos, has_end) << name;
      if (const Json* score = expected[i].find("score")) {
        EXPECT_NEAR(ours[p][i].score, score->as_double(), 1e-4) << name << " prompt " << p;
      }
      counts.tokens += ids.size(), counts.ends += has_end;
    }
  }
}

TEST(GenerationParity, every_case_gives_the_tokens_and_scores_of_transformers) {
  const Fixture f("gpt2.safetensors", "cases.json");
  const Loaded gpt2 = f.load();
  Counts counts;
  for (const Json& one : f.json.at("cases").as_array()) {
    expect_results(f, *gpt2.model, one, counts);
  }
  EXPECT_GT(counts.tokens, 1000u);
  EXPECT_GT(counts.ends, 100u);
}

// All prompts at once, with memory, with a short one, without, and causal.
TEST(GenerationParity, xlnet_gives_the_tokens_and_scores_of_transformers) {
  const Fixture f("xlnet.safetensors", "xlnet_cases.json");
  Counts counts;
  for (const Json& one : f.json.at("cases").as_array()) {
    SCOPED_TRACE(one.at("config").dump());
    const Loaded xlnet = f.load(&one.at("config"));
    expect_results(f, *xlnet.model, one, counts);
    expect_results(f, *xlnet.model, one, counts, 1);  // one prompt after another
  }
  EXPECT_GT(counts.tokens, 400u);
  EXPECT_GT(counts.ends, 5u);
}

TEST(GenerationParity, perplexity_of_windows_is_that_of_float64) {
  const Fixture f("gpt2.safetensors", "cases.json");
  const Loaded gpt2 = f.load();
  const Json& text = f.json.at("perplexity");
  const Ids ids = ids_of(text.at("ids"));
  for (const Json& one : text.at("windows").as_array()) {
    for (const int64_t batch_tokens : {1, 100, 10000}) {
      const TextLikelihood ours = likelihood_of_text(*gpt2.model->as<LanguageModel>(), ids,
                                                     {.context = one.get_int("context"),
                                                      .stride = one.get_int("stride"),
                                                      .batch_tokens = batch_tokens});
      EXPECT_NEAR(ours.nll, one.get_double("nll"), 1e-5 * one.get_double("nll")) << one.dump();
      EXPECT_EQ(ours.hits, one.get_int("hits")) << one.dump();
      EXPECT_EQ(ours.tokens, static_cast<int64_t>(ids.size()) - 1);
    }
  }
}

// 64 MB hold the logits of 41 rows of so many tokens: a batch of windows takes several parts.
TEST(Perplexity, logits_in_parts_give_the_bits_of_windows_one_by_one) {
  nn::Parameters parameters(5);
  const auto model = make_model(
      nn::Scope(parameters),
      Json::parse(R"({"model_type": "gpt2", "vocab_size": 400000, "n_positions": 32, "n_embd": 2,
                      "n_layer": 1, "n_head": 1, "initializer_range": 1})"));
  Ids ids;
  for (int32_t i = 0; i < 150; ++i) ids.push_back(i * 2659 % 400000);
  const auto with = [&](int64_t batch_tokens) {
    return likelihood_of_text(*model->as<LanguageModel>(), ids, {.batch_tokens = batch_tokens});
  };
  const TextLikelihood one = with(32), all = with(8192);
  EXPECT_EQ(one.nll, all.nll);
  EXPECT_EQ(one.hits, all.hits);
  EXPECT_EQ(all.tokens, 149);
}

}  // namespace
}  // namespace heddle::testing
