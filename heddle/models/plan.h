// What a model's cost follows from: its stacks, tables and vocabulary, without any weights.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "heddle/nn/general_attention.h"

namespace heddle {

/// A stack of equal layers: attention, attention to another stack if it has that, feed-forward.
struct StackPlan {
  std::string name = "stack";  ///< "encoder", "decoder", "stack"
  int64_t layers = 0, heads = 1, width = 0;
  int64_t hidden = 0;                    ///< inside the feed-forward layers
  bool is_causal = false;                ///< a word sees what came before it
  bool has_cross = false;                ///< asks the stack before it
  bool has_bias = true;                  ///< in the attention projections
  bool is_gated = false;                 ///< feed-forward (silu(x W1) * (x W2)) W3, without biases
  bool keeps_before_activation = false;  ///< the backward pass needs what the activation was given
  nn::ScoringChoice scoring = {};        ///< of attention
  bool has_last_norm = false;
  /// Weights that score queries against keys in one attention beside its projections.
  int64_t score_weights() const { return heads * scoring.weights(width / heads); }
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

}  // namespace heddle
