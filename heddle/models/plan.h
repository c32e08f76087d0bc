// What a model's cost follows from: its stacks, tables and vocabulary, without any weights.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "heddle/nn/general_attention.h"

namespace heddle {

/// Parameters beside those that follow from sizes: elements of matrices, and of vectors.
struct OtherParameters {
  int64_t matrices = 0, vectors = 0;
  int64_t all() const { return matrices + vectors; }
};

/// A stack of equal layers: attention, attention to another stack if it has that, feed-forward.
struct StackPlan {
  std::string name = "stack";  ///< "encoder", "decoder", "stack"
  int64_t layers = 0, heads = 1, width = 0;
  int64_t hidden = 0;                    ///< inside the feed-forward layers
  int64_t head_width = 0;                ///< 0: width / heads
  int64_t key_heads = 0;                 ///< heads of keys and values; 0: heads
  int64_t experts = 0;                   ///< feed-forward layers that a router chooses from; 0: one
  int64_t chosen_experts = 0;            ///< of these, those that a token goes through
  bool is_causal = false;                ///< a token sees what came before it
  bool has_cross = false;                ///< asks the stack before it
  bool has_bias = true;                  ///< of queries, keys and values
  bool has_projection_bias = true;       ///< in attention's output projection
  bool has_mlp_bias = true;              ///< in the feed-forward layers
  bool has_norm_bias = true;             ///< a norm has gain and bias, not a gain alone
  bool is_gated = false;                 ///< feed-forward layers of three products, not two
  bool keeps_before_activation = false;  ///< the backward pass needs what the activation was given
  nn::ScoringChoice scoring = {};        ///< of attention
  bool has_distances = false;            ///< relative attention: distances have keys of their own
  OtherParameters of_attention = {};     ///< of each layer: relative attention's, norms of heads
  bool has_last_norm = false;
  /// Weights that score queries against keys in one attention beside its projections.
  int64_t score_weights() const { return heads * scoring.weights(width / heads); }
  // What turns ids into vectors.
  int64_t token_rows = 0;      ///< rows of its own embedding table; 0: shared with the stack before
  bool adds_positions = true;  ///< as vectors, learned or not; else attention knows them, or nobody
  int64_t position_rows = 0;   ///< rows of a learned table; 0: none
  int64_t type_rows = 0;       ///< token types (BERT)
  bool has_embedding_norm = false;
  OtherParameters of_input = {};  ///< embedding tables of other widths, what layers share

  /// Columns of queries, and of each of keys and values.
  int64_t query_width() const { return head_width > 0 ? heads * head_width : width; }
  int64_t key_width() const {
    return key_heads > 0 ? query_width() / heads * key_heads : query_width();
  }
  /// Parameters of a norm.
  int64_t norm() const { return (has_norm_bias ? 2 : 1) * width; }
};

/// A model as far as its cost goes.
struct ModelPlan {
  std::string name = {};               ///< "base", or a path
  std::string type = {};               ///< model_type of its config, or "stack"
  std::vector<StackPlan> stacks = {};  ///< the second one is a decoder over the first
  int64_t vocab = 0;                   ///< tokens of the output; 0: nothing is predicted
  bool is_output_tied = true;          ///< the output projection is an embedding table
  bool has_output_bias = false;
  bool is_output_bias_a_row = false;  ///< [1, vocab] (Marian)
  OtherParameters of_output = {};     ///< of an adaptive softmax
  int64_t output_products = 0;        ///< multiplications of a token's logits; 0: width * vocab
  bool has_pooler = false;            ///< a square layer over the first token (BERT)
};

}  // namespace heddle
