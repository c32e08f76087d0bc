// Learning rates by depth, of the names that models have.
#include "heddle/train/layer_rates.h"

#include <gtest/gtest.h>

#include "tests/train/stack_run.h"

namespace heddle::train {
namespace {

double factor_of(const LayerRates& rates, const nn::Parameters& parameters,
                 const std::string& name) {
  for (const auto& p : parameters.all()) {
    for (const nn::Part& part : p->parts()) {
      if (part.name == name) return rates.factor(*p);
    }
    if (p->name() == name) return rates.factor(*p);
  }
  ADD_FAILURE() << name << " is not there";
  return 0;
}

TEST(LayerRates, fall_from_the_head_to_the_embeddings) {
  nn::Parameters parameters{3};
  StackConfig stack = tiny_bert("sequence_classification").stack;
  stack.hub().head = Head::sequence_classes;
  stack.set("num_hidden_layers", 2);
  const auto model = stack.make(nn::Scope(parameters));
  const LayerRates rates(parameters, 0.5);
  EXPECT_EQ(factor_of(rates, parameters, "classifier.weight"), 1);
  EXPECT_EQ(factor_of(rates, parameters, "bert.pooler.dense.weight"), 1);
  EXPECT_EQ(factor_of(rates, parameters, "bert.encoder.layer.1.output.dense.weight"), 1);
  EXPECT_EQ(factor_of(rates, parameters, "bert.encoder.layer.0.output.dense.bias"), 0.5);
  EXPECT_EQ(factor_of(rates, parameters, "bert.embeddings.word_embeddings.weight"), 0.25);
}

// Keys stand in one matrix with queries and values, and are parameters of their own where parts are
// trained; adapters have the rates of what they stand on.
TEST(LayerRates, parts_and_adapters_fall_as_the_matrices_do) {
  nn::Parameters parameters{3}, own{4};
  StackConfig stack = tiny_bert("sequence_classification").stack;
  stack.hub().head = Head::sequence_classes;
  stack.set("num_hidden_layers", 2);
  const auto model = stack.make(nn::Scope(parameters));
  const LayerRates rates(parameters, 0.5);
  const std::string layer = "bert.encoder.layer.0.attention.self.";
  for (const std::string& name : {layer + "key.weight", layer + "value.bias",
                                  "base_model.model." + layer + "key.lora_A.weight",
                                  "base_model.model." + layer + "query.lora_B.weight",
                                  "base_model.model." + layer + "value.weight"}) {
    EXPECT_EQ(
        rates.factor(own.get({2, 2}, {{.name = name, .begin = 0, .rows = 2}}, nn::Init::zeros())),
        0.5)
        << name;
  }
}

TEST(LayerRates, norm_behind_an_encoder_has_the_rate_of_its_last_layer) {
  nn::Parameters parameters{1};
  for (const char* name :
       {"model.shared.weight", "model.encoder.layers.0.w", "model.encoder.layers.1.w",
        "model.encoder.layer_norm.weight", "model.decoder.embed.weight", "model.decoder.layers.0.w",
        "model.decoder.layers.1.w", "model.decoder.layers.2.w",
        "model.decoder.layer_norm.weight"}) {
    parameters.get({2, 2}, {{.name = name, .begin = 0, .rows = 2}}, nn::Init::zeros());
  }
  const LayerRates rates(parameters, 0.5);
  EXPECT_EQ(factor_of(rates, parameters, "model.encoder.layer_norm.weight"), 1);
  EXPECT_EQ(factor_of(rates, parameters, "model.decoder.layer_norm.weight"), 1);
  EXPECT_EQ(factor_of(rates, parameters, "model.decoder.embed.weight"), 0.125);
  EXPECT_EQ(factor_of(rates, parameters, "model.shared.weight"), 0.25);
}

TEST(LayerRates, each_stack_counts_on_its_own) {
  nn::Parameters parameters{1};
  for (const char* name :
       {"embed.weight", "encoder.layers.0.w", "encoder.layers.1.w", "decoder.embed.weight",
        "decoder.layers.0.w", "decoder.layers.1.w", "decoder.layers.2.w", "head.weight"}) {
    parameters.get({2, 2}, {{.name = name, .begin = 0, .rows = 2}}, nn::Init::zeros());
  }
  const LayerRates rates(parameters, 0.1);
  EXPECT_DOUBLE_EQ(factor_of(rates, parameters, "embed.weight"), 0.01);
  EXPECT_DOUBLE_EQ(factor_of(rates, parameters, "encoder.layers.1.w"), 1);
  EXPECT_DOUBLE_EQ(factor_of(rates, parameters, "decoder.embed.weight"), 0.001);
  EXPECT_DOUBLE_EQ(factor_of(rates, parameters, "decoder.layers.0.w"), 0.01);
  EXPECT_DOUBLE_EQ(factor_of(rates, parameters, "head.weight"), 1);
}

}  // namespace
}  // namespace heddle::train
