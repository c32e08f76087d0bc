// Which experts a text goes through; the perplexity itself is in generation_parity_test.cc.
#include "heddle/infer/perplexity.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "heddle/autograd/tape.h"
#include "heddle/models/registry.h"

namespace heddle {
namespace {

using Ids = std::vector<int32_t>;

struct Mixture {
  nn::Parameters parameters{5};
  std::unique_ptr<Model> made = make_model(
      nn::Scope(parameters),
      Json::parse(R"({"model_type": "mixtral", "vocab_size": 60, "max_position_embeddings": 48,
          "hidden_size": 40, "intermediate_size": 52, "num_hidden_layers": 2,
          "num_attention_heads": 4, "num_key_value_heads": 1, "initializer_range": 0.3,
          "num_local_experts": 5, "num_experts_per_tok": 2})"));
  const LanguageModel& model = *language_model(*made);
};

Ids random_text(int32_t words) {
  Ids ids;
  for (int32_t i = 0; i < words; ++i) ids.push_back((i * i * 7 + i * 13) % 60);
  return ids;
}

// The two largest logits of each row, by hand.
TEST(RoutingOfText, counts_are_those_of_the_largest_logits) {
  const Mixture m;
  const Ids ids = random_text(40);
  std::vector<std::vector<int64_t>> expected;
  nn::Observer observer;
  observer.router = [&](const std::string&, const Tensor& logits) {
    const std::vector<float> x = logits.to_floats();
    std::vector<int64_t>& counts = expected.emplace_back(5);
    for (size_t row = 0; row + 1 < ids.size(); ++row) {  // the last word predicts none
      for (size_t e = 0; e < 5; ++e) {
        const auto begin = x.begin() + static_cast<int64_t>(row) * 5;
        counts[e] += std::count_if(begin, begin + 5, [&](float y) { return y > begin[e]; }) < 2;
      }
    }
  };
  const Segments one = Segments::uniform(1, 40);
  {
    const NoGrad off;
    nn::Run run;
    run.observer = &observer;
    m.model.hidden({.ids = ids, .segments = &one}, run);
  }
  const TextLikelihood found = likelihood_of_text(m.model, ids, {});
  EXPECT_EQ(found.routing, expected);
  EXPECT_NE(found.routing[0], found.routing[1]);
}

// Windows overlap, but a word that stands in two of them counts once.
TEST(RoutingOfText, each_word_counts_once_whatever_the_windows) {
  const Mixture m;
  const Ids ids = random_text(100);
  const TextLikelihood one = likelihood_of_text(m.model, ids, {.context = 16, .stride = 4});
  ASSERT_EQ(one.routing.size(), 2u);
  for (const auto& layer : one.routing) {
    EXPECT_EQ(std::accumulate(layer.begin(), layer.end(), int64_t{0}), 2 * 99);
  }
  const TextLikelihood parts =
      likelihood_of_text(m.model, ids, {.context = 16, .stride = 4, .batch_tokens = 20});
  EXPECT_EQ(parts.routing, one.routing);
}

}  // namespace
}  // namespace heddle
