// What a model's cost follows from: its stacks, tables and vocabulary, without any weights.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "heddle/models/bert.h"
#include "heddle/models/gpt2.h"
#include "heddle/models/transformer_config.h"

namespace heddle::inspect {

/// A stack of equal layers: attention, attention to another stack if it has that, feed-forward.
struct StackPlan {
  std::string name = {};  ///< "encoder", "decoder", "stack"
  int64_t layers = 0, heads = 1, width = 0;
  int64_t hidden = 0;                    ///< inside the feed-forward layers
  bool is_causal = false;                ///< a word sees what came before it
  bool has_cross = false;                ///< asks the stack before it
  bool has_bias = true;                  ///< in the attention projections
  bool keeps_before_activation = false;  ///< the backward pass needs what the activation was given
  bool has_last_norm = false;
  // What turns ids into vectors.
  int64_t word_rows = 0;      ///< rows of its own word table; 0: shared with the stack before
  int64_t position_rows = 0;  ///< rows of a learned table; 0: none
  int64_t type_rows = 0;      ///< token types (BERT)
  bool has_embedding_norm = false;
};

/// A model as far as its cost goes.
struct ModelPlan {
  std::string name = {};               ///< "base", or a path
  std::string type = {};               ///< model_type of its config, or "stack"
  std::vector<StackPlan> stacks = {};  ///< the second one is a decoder over the first
  int64_t vocab = 0;                   ///< words of the output; 0: nothing is predicted
  bool is_output_tied = true;          ///< the output projection is a word table
  bool has_output_bias = false;
  bool has_pooler = false;  ///< a square layer over the first word (BERT)
};

/// A stack alone, for sums over attention in general: pixels, patches, any sequence.
struct StackConfig {
  int64_t layers = 12, heads = 12, d_model = 768, ffn_dim = 3072, vocab_size = 0,
          position_embeddings = 0;
  bool causal = false;

  template <class V>
  void fields(V& v) {
    v("layers", layers, "number of blocks", at_least(1));
    v("heads", heads, "attention heads; must divide d_model", at_least(1));
    v("d_model", d_model, "width of the residual stream", at_least(1));
    v("ffn_dim", ffn_dim, "width inside the feed-forward layers", at_least(1));
    v("vocab_size", vocab_size, "words; 0: vectors come in and go out", at_least(0));
    v("position_embeddings", position_embeddings, "learned positions; 0: none", at_least(0));
    v("causal", causal, "a place sees itself and what came before");
  }
};

ModelPlan plan_of(const TransformerConfig& config);
ModelPlan plan_of(const Gpt2Config& config);
ModelPlan plan_of(const BertConfig& config);
ModelPlan plan_of(const StackConfig& config);

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
/// The tables of a stack and its norms outside layers.
int64_t embedding_parameters(const StackPlan& stack);
/// The output projection where it is not a word table, its bias, and the pooler.
int64_t output_parameters(const ModelPlan& plan);

}  // namespace heddle::inspect
