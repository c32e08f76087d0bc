// Training a language model: targets, learning, and bits that threads and batching do not change.
#include "heddle/train/tasks/losses.h"

#include <gtest/gtest.h>

#include "heddle/base/parallel.h"
#include "heddle/models/registry.h"
#include "heddle/train/optimizer.h"
#include "tests/base/temporary.h"

namespace heddle::train {
namespace {

constexpr const char* kTiny = R"({"model_type": "gpt2", "vocab_size": 30, "n_positions": 16,
  "n_embd": 32, "n_layer": 2, "n_head": 4})";

struct TinyModel {
  nn::Parameters parameters{3};
  std::unique_ptr<Model> made = make_model(nn::Scope(parameters), Json::parse(kTiny));
  const LanguageModel& gpt2 = *made->as<LanguageModel>();
};

std::shared_ptr<const RowIds> row_ids(const Segments& segments, uint32_t first_sample) {
  RowIds rows;
  for (int64_t i = 0; i < segments.count(); ++i) {
    for (int64_t r = 0; r < segments.length(i); ++r) {
      rows.sample.push_back(first_sample + static_cast<uint32_t>(i));
      rows.position.push_back(static_cast<uint32_t>(r));
    }
  }
  return std::make_shared<const RowIds>(std::move(rows));
}

const std::vector<int32_t> kIds = {1, 2, 3, 4, 5, 6, 7, 9, 8, 7, 6};

TEST(NextTargets, last_token_of_a_sequence_has_none) {
  const Segments segments = Segments::from_lengths(std::vector<int64_t>{3, 1, 0, 2});
  EXPECT_EQ(next_targets(std::vector<int32_t>{5, 6, 7, 8, 9, 4}, segments),
            (std::vector<int32_t>{6, 7, -1, -1, 4, -1}));
}

TEST(NextTargets, sequences_of_another_number_of_tokens_or_none_at_all_are_shape_errors) {
  const TinyModel m;
  const Segments segments = Segments::uniform(1, 12);  // of 11
  expect_error(ErrorKind::shape, {"11 tokens in sequences of 12"},
               [&] { next_targets(kIds, segments); });
  expect_error(ErrorKind::shape, {"tokens have no segments"},
               [&] { accumulate_gradients(m.gpt2, {.ids = kIds}, {}); });
  expect_error(ErrorKind::shape, {"tokens have no segments"},
               [&] { m.gpt2.hidden(nn::TokenRows{.ids = kIds}, {}); });
}

TEST(LanguageTraining, two_texts_are_learnt_by_heart) {
  TinyModel m;
  const Segments segments = Segments::from_lengths(std::vector<int64_t>{7, 4});
  const nn::TokenRows tokens{.ids = kIds, .segments = &segments, .rows = row_ids(segments, 0)};
  Optimizer adam(m.parameters, {});
  nn::Run run{.dropout = {.training = true}};  // dropouts of 0.1
  const LossSums before = batch_loss(m.gpt2, tokens, {});
  EXPECT_EQ(before.predicted, 9);
  EXPECT_NEAR(before.loss / 9, std::log(30), 0.1);  // no token stands out
  for (int i = 0; i < 80; ++i) {
    ++run.dropout.update;
    const LossSums sums = accumulate_gradients(m.gpt2, tokens, run);
    adam.step(3e-3, 1.0 / static_cast<double>(sums.predicted));
  }
  EXPECT_LT(batch_loss(m.gpt2, tokens, {}).loss / 9, 0.1);
}

std::vector<float> gradients(const nn::TokenRows& tokens, nn::Parameters& parameters,
                             const LanguageModel& gpt2) {
  accumulate_gradients(gpt2, tokens, {.dropout = {.training = true, .seed = 5}});
  std::vector<float> all;
  for (auto& p : parameters.all()) {
    const std::vector<float> g = p->grad().to_floats();
    all.insert(all.end(), g.begin(), g.end());
    p->grad() = Tensor();
  }
  return all;
}

TEST(LanguageTraining, threads_change_no_bit_of_a_gradient) {
  TinyModel m;
  const Segments segments = Segments::from_lengths(std::vector<int64_t>{7, 4});
  const nn::TokenRows tokens{.ids = kIds, .segments = &segments, .rows = row_ids(segments, 0)};
  const int before = num_threads();
  set_num_threads(1);
  const std::vector<float> one = gradients(tokens, m.parameters, m.gpt2);
  set_num_threads(3);
  EXPECT_EQ(gradients(tokens, m.parameters, m.gpt2), one);
  set_num_threads(before);
}

TEST(LanguageTraining, layers_that_are_computed_again_change_no_bit_and_save_memory) {
  for (const DType compute : {DType::f32, DType::bf16}) {
    TinyModel m;
    const Segments segments = Segments::uniform(20, 16);
    std::vector<int32_t> ids;
    for (int32_t i = 0; i < 320; ++i) ids.push_back(i * 7 % 30);
    const nn::TokenRows tokens{.ids = ids, .segments = &segments, .rows = row_ids(segments, 0)};
    const auto peak_of = [&](bool recompute, std::vector<std::vector<float>>& grads) {
      const int64_t before = allocator_stats().in_use;
      reset_allocator_peak();
      accumulate_gradients(
          m.gpt2, tokens,
          {.compute = compute, .dropout = {.training = true, .seed = 5}, .recompute = recompute});
      for (auto& p : m.parameters.all()) {
        grads.push_back(p->grad().to_floats());
        p->grad() = Tensor();
      }
      return allocator_stats().peak - before;
    };
    std::vector<std::vector<float>> kept, again;
    peak_of(false, kept);  // makes what stays
    kept.clear();
    const int64_t plain = peak_of(false, kept), less = peak_of(true, again);
    EXPECT_EQ(kept, again);
    EXPECT_LT(less, plain * 3 / 4) << dtype_name(compute);
  }
}

// Dropout is a function of the sample's number, so a text alone loses what it loses in a batch.
TEST(LanguageTraining, loss_of_a_text_does_not_depend_on_the_others) {
  const TinyModel m;
  const nn::Run run{.dropout = {.training = true, .seed = 5}};
  const Segments both = Segments::from_lengths(std::vector<int64_t>{7, 4});
  const Segments seven = Segments::uniform(1, 7), four = Segments::uniform(1, 4);
  const std::span<const int32_t> ids = kIds;
  const double together =
      batch_loss(m.gpt2, {.ids = ids, .segments = &both, .rows = row_ids(both, 0)}, run).loss;
  const double first =
      batch_loss(m.gpt2, {.ids = ids.first(7), .segments = &seven, .rows = row_ids(seven, 0)}, run)
          .loss;
  const double second =
      batch_loss(m.gpt2, {.ids = ids.last(4), .segments = &four, .rows = row_ids(four, 1)}, run)
          .loss;
  EXPECT_DOUBLE_EQ(together, first + second);
}

// What balances the experts leaves a layer beside the residual stream.
TEST(LanguageTraining, layers_of_a_balanced_mixture_that_are_computed_again_change_no_bit) {
  const Segments segments = Segments::from_lengths(std::vector<int64_t>{7, 4});
  const nn::TokenRows tokens{.ids = kIds, .segments = &segments, .rows = row_ids(segments, 0)};
  const auto gradients_of = [&](double balance, bool recompute) {
    Json config = Json::parse(
        R"({"model_type": "mixtral", "vocab_size": 30, "hidden_size": 16, "intermediate_size": 20,
            "num_hidden_layers": 3, "num_attention_heads": 2, "num_key_value_heads": 1,
            "num_local_experts": 4})");
    config["router_aux_loss_coef"] = balance;
    nn::Parameters parameters(3);
    const auto model = make_model(nn::Scope(parameters), config);
    accumulate_gradients(*model->as<LanguageModel>(), tokens,
                         {.dropout = {.training = true, .seed = 5}, .recompute = recompute});
    std::vector<std::vector<float>> grads;
    for (auto& p : parameters.all()) {
      EXPECT_TRUE(p->grad().defined()) << p->name();
      if (p->grad().defined()) grads.push_back(p->grad().to_floats());
    }
    return grads;
  };
  const auto kept = gradients_of(0.5, false);
  EXPECT_EQ(gradients_of(0.5, true), kept);
  const auto unbalanced = gradients_of(0, true);
  EXPECT_EQ(unbalanced, gradients_of(0, false));
  EXPECT_NE(unbalanced, kept);
}

// Shazeer et al. 2017: what balances the experts reaches the routers through the loss of a batch.
TEST(LanguageTraining, balance_of_experts_adds_its_gradient_to_that_of_the_tokens) {
  const Segments segments = Segments::from_lengths(std::vector<int64_t>{7, 4});
  const nn::TokenRows tokens{.ids = kIds, .segments = &segments, .rows = row_ids(segments, 0)};
  const auto router_gradient = [&](double coefficient) {
    Json config = Json::parse(
        R"({"model_type": "mixtral", "vocab_size": 30, "hidden_size": 16, "intermediate_size": 20,
            "num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 1,
            "num_local_experts": 4})");
    config["router_aux_loss_coef"] = coefficient;
    nn::Parameters parameters(3);
    const auto model = make_model(nn::Scope(parameters), config);
    accumulate_gradients(*model->as<LanguageModel>(), tokens, {});
    for (auto& p : parameters.all()) {
      if (p->name().ends_with("gate.weight")) return p->grad().to_floats();
    }
    return std::vector<float>();
  };
  const std::vector<float> none = router_gradient(0), one = router_gradient(1);
  const std::vector<float> two = router_gradient(2);
  ASSERT_EQ(none.size(), 4u * 16);
  double change = 0;
  for (size_t i = 0; i < none.size(); ++i) {
    change += std::abs(one[i] - none[i]);
    EXPECT_NEAR(two[i] - none[i], 2 * (one[i] - none[i]), 1e-5);  // linear in the coefficient
  }
  EXPECT_GT(change, 1e-4);
}

}  // namespace
}  // namespace heddle::train
