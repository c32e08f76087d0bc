// Which experts a text goes through; the perplexity itself is in generation_parity_test.cc.
#include "heddle/infer/perplexity.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
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
  const LanguageModel& model = *made->as<LanguageModel>();
};

Ids random_text(int32_t tokens) {
  Ids ids;
  for (int32_t i = 0; i < tokens; ++i) ids.push_back((i * i * 7 + i * 13) % 60);
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
    for (size_t row = 0; row + 1 < ids.size(); ++row) {  // the last token predicts none
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

// Windows overlap, but a token that stands in two of them counts once.
TEST(RoutingOfText, each_token_counts_once_whatever_the_windows) {
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

// One window holds the text, so that all its rows can be had by hand.
TEST(DetailsOfText, log_p_rank_and_likeliest_are_those_of_the_logits) {
  const Mixture m;
  const Ids ids = random_text(40);
  const Segments one = Segments::uniform(1, 40);
  const auto tokens = likelihood_of_text(m.model, ids, {.details = 100}).details;
  ASSERT_EQ(tokens.size(), 39u);
  const NoGrad off;
  nn::Run run;
  const auto logits =
      m.model.output()(m.model.hidden({.ids = ids, .segments = &one}, run), run).to_floats();
  for (size_t i = 0; i < 39; ++i) {
    const auto row = std::span(logits).subspan(i * 60, 60);
    const float target = row[static_cast<size_t>(ids[i + 1])];
    double sum = 0;
    for (const float x : row) sum += std::exp(static_cast<double>(x));
    const auto best = std::ranges::max_element(row);
    EXPECT_NEAR(tokens[i].log_p, target - std::log(sum), 1e-5);
    EXPECT_EQ(tokens[i].rank, 1 + std::ranges::count_if(row, [&](float x) { return x > target; }));
    EXPECT_EQ(tokens[i].likeliest, best - row.begin());
    EXPECT_NEAR(tokens[i].likeliest_log_p, *best - std::log(sum), 1e-5);
  }
}

TEST(DetailsOfText, the_first_tokens_are_told_by_any_window_and_sum_to_the_loss) {
  const Mixture m;
  const Ids ids = random_text(200);
  const auto whole = likelihood_of_text(m.model, ids, {.context = 16, .stride = 5, .details = 199});
  double nll = 0;
  int64_t hits = 0;
  for (const PredictedToken& token : whole.details) {
    nll -= token.log_p;
    hits += token.rank == 1;
  }
  EXPECT_EQ(whole.details.size(), 199u);
  EXPECT_NEAR(nll, whole.nll, 1e-9);
  EXPECT_EQ(hits, whole.hits);
  const auto some = likelihood_of_text(
      m.model, ids, {.context = 16, .stride = 5, .batch_tokens = 1, .details = 30});
  ASSERT_EQ(some.details.size(), 30u);
  EXPECT_EQ(some.details[29].log_p, whole.details[29].log_p);
  EXPECT_TRUE(likelihood_of_text(m.model, ids, {.context = 16}).details.empty());
}

}  // namespace
}  // namespace heddle
