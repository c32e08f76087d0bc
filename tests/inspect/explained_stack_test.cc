// Heads of models of the registry step by step: shared keys, windows, scores by distance.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "heddle/infer/loading/loaded_model.h"
#include "heddle/inspect/attention_maps.h"
#include "heddle/inspect/explanation.h"
#include "tests/base/temporary.h"
#include "tests/infer/small_models.h"
#include "tests/inspect/explained_steps.h"
#include "tests/support/places.h"

namespace heddle::inspect {
namespace {

constexpr int64_t kHeads = 4, kWidth = 8;  // of the heads
const std::vector<int32_t> kIds = {3, 11, 7, 5, 19, 2};

struct Case {
  std::string name, config;
  bool is_causal;
  int64_t window;      // keys that a query sees; 0: all
  int64_t memory = 0;  // keys before the first query
};

// Weights are scaled up, so that heads differ in what they look at.
Subject open(const TemporaryFolder& folder, const std::string& config) {
  nn::Parameters parameters(1);
  const auto model = make_model(nn::Scope(parameters), Json::parse(config));
  for (auto& p : parameters.all()) {
    for (int64_t i = 0; i < p->elements(); ++i) {
      float& value = p->value().data<float>()[i];
      value = p->value().rank() < 2 ? value + 0.1f * std::sin(static_cast<float>(i)) : 8 * value;
    }
    p->changed(true);
  }
  save_model(folder / "model", *model, parameters);
  return Subject::open(folder / "model", {.source = "", .target = {}, .ids = kIds});
}

class ExplainedStack : public ::testing::TestWithParam<Case> {
 protected:
  const TemporaryFolder folder_;
  const Subject subject_ = open(folder_, GetParam().config);
};

// In float64, against what the kernels gave.
TEST_P(ExplainedStack, steps_are_the_models_own_numbers_for_every_head) {
  ASSERT_EQ(subject_.kinds().size(), 1u);
  EXPECT_EQ(subject_.kinds()[0].layers, 2);
  const std::vector<HeadMap> maps = attention_maps(subject_, {});
  ASSERT_EQ(maps.size(), static_cast<size_t>(2 * kHeads));
  for (const HeadMap& map : maps) {
    SCOPED_TRACE(head_name(subject_, map));
    const Explanation e =
        explain_head(subject_, {.kind = "self", .layer = map.layer, .head = map.head});
    const Matrix& weights = step_of(e, "weights").result;
    ASSERT_EQ(weights.values.size(), map.weights.size());
    for (size_t i = 0; i < map.weights.size(); ++i) {
      EXPECT_NEAR(weights.values[i], map.weights[i], 1e-5);
    }
    const Matrix &sum = step_of(e, "sum").result, &concat = step_of(e, "concat").result;
    ASSERT_EQ(sum.cols, kWidth);
    for (int64_t i = 0; i < sum.rows; ++i) {
      for (int64_t d = 0; d < kWidth; ++d) {
        EXPECT_NEAR(sum.at(i, d), concat.at(i, map.head * kWidth + d), 1e-5);
      }
    }
    EXPECT_NE(*map.importance, 0);
  }
  // Heads are not alike, or the comparison would pass with any of them.
  EXPECT_GT(std::abs(maps[0].weights.back() - maps[1].weights.back()), 1e-3);
}

TEST_P(ExplainedStack, mask_hides_what_the_model_hides) {
  EXPECT_EQ(subject_.kinds()[0].is_causal, GetParam().is_causal);
  const Explanation e = explain_head(subject_, {.kind = "self"});
  const Matrix& mask = step_of(e, "mask").result;
  EXPECT_EQ(mask.cols, mask.rows + GetParam().memory);
  for (int64_t i = 0; i < mask.rows; ++i) {
    for (int64_t j = 0; j < mask.cols; ++j) {
      const int64_t back = i + GetParam().memory - j;
      const bool is_hidden = (GetParam().is_causal && back < 0) ||
                             (GetParam().window > 0 && back >= GetParam().window);
      EXPECT_EQ(mask.at(i, j), is_hidden ? -INFINITY : 0) << i << ", " << j;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Models, ExplainedStack,
    ::testing::Values(
        Case{"gpt2",
             R"({"model_type": "gpt2", "vocab_size": 30, "n_positions": 8, "n_embd": 32,
                 "n_layer": 2, "n_head": 4})",
             true, 0},
        Case{"bert",
             R"({"model_type": "bert", "vocab_size": 30, "hidden_size": 32, "num_hidden_layers": 2,
                 "num_attention_heads": 4, "intermediate_size": 24})",
             false, 0},
        Case{"llama",
             R"({"model_type": "llama", "vocab_size": 30, "hidden_size": 32, "num_hidden_layers": 2,
                 "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 24})",
             true, 0},
        Case{"mistral",
             R"({"model_type": "mistral", "vocab_size": 30, "hidden_size": 32,
                 "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 1,
                 "intermediate_size": 24, "sliding_window": 3})",
             true, 3},
        Case{"transformer_xl",
             R"({"model_type": "transfo-xl", "vocab_size": 30, "cutoffs": [10], "d_model": 32,
                 "d_embed": 32, "n_head": 4, "d_head": 8, "d_inner": 24, "n_layer": 2,
                 "mem_len": 3, "same_length": false})",
             true, 0, 3},
        Case{"xlnet",
             R"({"model_type": "xlnet", "vocab_size": 30, "d_model": 32, "n_head": 4,
                 "d_inner": 24, "n_layer": 2})",
             false, 0}),
    [](const auto& each) { return each.param.name; });

TEST(ExplainedDistances, scores_of_tokens_and_of_distances_add_up) {
  const TemporaryFolder folder;
  const Subject subject =
      open(folder, R"({"model_type": "transfo-xl", "vocab_size": 30, "cutoffs": [10], "d_model": 32,
                  "d_embed": 32, "n_head": 4, "d_head": 8, "d_inner": 24, "n_layer": 2,
                  "mem_len": 2, "same_length": false})");
  const Explanation e = explain_head(subject, {.kind = "self", .layer = 1, .head = 2});
  const auto tokens = static_cast<int64_t>(kIds.size());
  const ExplainedStep& r = step_of(e, "r");
  const Matrix &all = step_of(e, "scores").result, &content = step_of(e, "content_scores").result;
  const Matrix &distance = step_of(e, "distance_scores").result,
               &q = step_of(e, "q_distance").result;
  for (int64_t i = 0; i < tokens; ++i) {
    for (int64_t j = 0; j <= i + 2; ++j) {
      EXPECT_NEAR(all.at(i, j), content.at(i, j) + distance.at(i, j), 1e-12);
      const auto row = std::find(r.rows.begin(), r.rows.end(), fmt::format("{} back", i + 2 - j));
      ASSERT_NE(row, r.rows.end());
      double want = 0;
      for (int64_t d = 0; d < kWidth; ++d) {
        want += q.at(i, d) * r.result.at(row - r.rows.begin(), d);
      }
      EXPECT_NEAR(distance.at(i, j), want, 1e-9);
    }
  }
}

// A T5, whose scores gain a bias by distance and are divided by nothing, in all its attention.
TEST(ExplainedBias, steps_are_the_models_own_numbers) {
  const Subject subject = Subject::open(std::string(testing::kFixtures) + "/seq2seq/t5",
                                        {.source = "a man on a horse"});
  ASSERT_EQ(subject.kinds().size(), 3u);
  double largest_bias = 0;
  for (const HeadMap& map : attention_maps(subject, {})) {
    SCOPED_TRACE(head_name(subject, map));
    const AttentionKind& kind = subject.kinds()[map.kind];
    const Explanation e =
        explain_head(subject, {.kind = kind.name, .layer = map.layer, .head = map.head});
    EXPECT_EQ(e.divisor, 1);
    const Matrix& weights = step_of(e, "weights").result;
    ASSERT_EQ(weights.values.size(), map.weights.size());
    for (size_t i = 0; i < map.weights.size(); ++i) {
      EXPECT_NEAR(weights.values[i], map.weights[i], 1e-5);
    }
    if (kind.name == "cross") continue;  // sources have no distance from targets
    for (const double b : step_of(e, "bias").result.values) {
      largest_bias = std::max(largest_bias, std::abs(b));
    }
  }
  EXPECT_GT(largest_bias, 1e-3);
}

// A translator with a recurrent decoder that compares its states so with the source's.
Subject open_recurrent(const TemporaryFolder& folder, const std::string& scoring,
                       const std::string& size) {
  nn::Parameters parameters(1);
  const auto model =
      make_model(nn::Scope(parameters),
                 Json::parse(fmt::format(R"({{"model_type": "rnn_seq2seq", "vocab_size": 312,
          "embedding_size": 12, "hidden_size": 16, "encoder_hidden_size": 8,
          "attention_scoring": "{}", "attention_size": {}}})",
                                         scoring, size)));
  save_model(folder / "model", *model, parameters);
  testing::shared_tokenizer().save(folder / "model/tokenizer.model");
  return Subject::open(folder / "model", {.source = "the old man", .target = "a man"});
}

// A recurrent decoder, whose states ask and whose contexts go into its cell as they are.
TEST(ExplainedStates, steps_are_the_models_own_numbers_and_no_matrix_follows) {
  for (const char* size : {"0", "6"}) {  // states are compared themselves, or projected
    SCOPED_TRACE(size);
    const TemporaryFolder folder;
    const Subject subject = open_recurrent(folder, "scaled_dot", size);
    const std::vector<HeadMap> maps = attention_maps(subject, {.importance = false});
    ASSERT_EQ(maps.size(), 1u);
    const Explanation e = explain_head(subject, {});
    const Matrix &weights = step_of(e, "weights").result, &sum = step_of(e, "sum").result,
                 &output = step_of(e, "output").result;
    ASSERT_EQ(weights.values.size(), maps[0].weights.size());
    for (size_t i = 0; i < weights.values.size(); ++i) {
      EXPECT_NEAR(weights.values[i], maps[0].weights[i], 1e-6);
    }
    ASSERT_EQ(sum.values.size(), output.values.size());
    for (size_t i = 0; i < sum.values.size(); ++i) {
      EXPECT_NEAR(sum.values[i], output.values[i], 1e-6);
    }
    EXPECT_EQ(step_of(e, "q").formula == "Q = X", std::string(size) == "0");
    EXPECT_EQ(step_of(e, "x").result.values == step_of(e, "q").result.values,
              std::string(size) == "0");
    EXPECT_EQ(std::ranges::count(e.steps, "concat", &ExplainedStep::key), 0);
    EXPECT_NE(step_of(e, "output").text.find("given beside the token"), std::string::npos);
  }
}

// By a network, whose weights are a step of their own, and nothing is divided.
TEST(ExplainedStates, scores_that_are_no_products_are_the_models_own) {
  for (const std::string scoring : {"additive", "linear"}) {
    SCOPED_TRACE(scoring);
    const TemporaryFolder folder;
    const Subject subject = open_recurrent(folder, scoring, "6");
    const std::vector<HeadMap> maps = attention_maps(subject, {.importance = false});
    const Explanation e = explain_head(subject, {});
    EXPECT_EQ(e.divisor, 1);
    EXPECT_EQ(step_of(e, "score_weights").result.cols, scoring == "additive" ? 6 : 12);
    const ExplainedStep& scores = step_of(e, "scores");
    EXPECT_EQ(scores.formula.find("tanh") != std::string::npos, scoring == "additive");
    EXPECT_NE(scores.result.at(0, 0), scores.result.at(0, 1));
    const Matrix& weights = step_of(e, "weights").result;
    ASSERT_EQ(weights.values.size(), maps[0].weights.size());
    for (size_t i = 0; i < weights.values.size(); ++i) {
      EXPECT_NEAR(weights.values[i], maps[0].weights[i], 1e-6);
    }
    const Matrix &sum = step_of(e, "sum").result, &output = step_of(e, "output").result;
    for (size_t i = 0; i < sum.values.size(); ++i) {
      EXPECT_NEAR(sum.values[i], output.values[i], 1e-6);
    }
  }
}

}  // namespace
}  // namespace heddle::inspect
