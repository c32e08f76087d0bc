// Plans of models by name, without any weights, and their numbers of parameters.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "heddle/models/plan.h"
#include "heddle/models/registry.h"
#include "heddle/models/transformer_config.h"

namespace heddle::inspect {

/// A stack alone, for sums over attention in general: pixels, patches, any sequence.
struct PlainStackConfig {
  int64_t layers = 12, heads = 12, d_model = 768, ffn_dim = 3072, vocab_size = 0,
          position_embeddings = 0;
  bool causal = false;

  template <class V>
  void fields(V& v) {
    v("layers", layers, "number of blocks", at_least(1));
    v("heads", heads, "attention heads; must divide d_model", at_least(1));
    v("d_model", d_model, "width of the residual stream", at_least(1));
    v("ffn_dim", ffn_dim, "width inside the feed-forward layers", at_least(1));
    v("vocab_size", vocab_size, "tokens; 0: vectors come in and go out", at_least(0));
    v("position_embeddings", position_embeddings, "learned positions; 0: none", at_least(0));
    v("causal", causal, "a position sees itself and what came before");
  }
};

/// Of a model of the registry, whose weights are not made.
ModelPlan plan_of(const ModelConfig& config);
ModelPlan plan_of(const PlainStackConfig& config);

/// Names that find_plan() knows beside paths, in order.
std::vector<std::string> plan_names();

/// A plan by name: a preset or recipe of heddle, a published size (gpt2-xl, gpt3, bert-large),
/// "stack", a config.json or settings file, a model directory or a run. `settings` are FIELD=VALUE.
/// Errors: usage for an unknown name or field (the nearest is proposed), data for a broken file or
/// fields that do not fit together.
ModelPlan find_plan(const std::string& name, const std::vector<std::string>& settings = {});

/// Scalars of one layer, of what turns ids into vectors with the last norm, and of the whole model.
int64_t layer_parameters(const StackPlan& stack);
int64_t model_parameters(const ModelPlan& plan);

// Parts of these sums.
/// A linear layer: in * out weights, and out biases if it has them.
int64_t linear_parameters(int64_t in, int64_t out, bool has_bias);
/// Relative attention's projection of distances in one layer, and its biases.
int64_t distance_parameters(const StackPlan& stack);
/// Norms over each head's queries and keys in one layer.
int64_t head_norm_parameters(const StackPlan& stack);
/// The tables of a stack and its norms outside layers.
int64_t embedding_parameters(const StackPlan& stack);
/// The output projection where it is not an embedding table, its bias, and the pooler.
int64_t output_parameters(const ModelPlan& plan);

}  // namespace heddle::inspect
