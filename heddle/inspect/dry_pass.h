// The steps of a forward pass, with shapes and work, by a dry run.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "heddle/models/token_model.h"

namespace heddle::inspect {

/// How much goes through the model at once.
struct Workload {
  int64_t batch = 1;  ///< sequences
  int64_t source = 0;  ///< tokens of each (of an encoder–decoder: of a source); 0: as the model has
  int64_t target = 0;  ///< tokens of each translation; 0: as many as source
  int64_t window = 0;  ///< self-attention restricted to blocks of so many positions; 0: all see all
};

/// Attention matrices of one kind in one layer: those of all heads and sequences are
/// [matrices, rows, columns].
struct AttentionMatrices {
  int64_t matrices = 0, rows = 0, columns = 0;
  int64_t entries() const { return matrices * rows * columns; }
};

/// An op of the forward pass, or several of one name, as equal layers do it.
struct Step {
  std::string part = {};  ///< "model.encoder.layers": those are `layers`; else one layer's name
  std::string name = {};  ///< "self_attn.out_proj linear"
  std::vector<int64_t> in = {}, out = {};  ///< shapes in one layer, of the whole batch
  AttentionMatrices attention = {};        ///< of an attention step
  bool has_flash = true;                   ///< no matrix is stored
  int64_t layers = 1;
  // Of all layers:
  int64_t parameters = 0;       ///< those that the step is the first to use
  int64_t flops = 0;            ///< of products, a multiplication and an addition each
  int64_t attention_flops = 0;  ///< the part that grows with the square of the length
  int64_t hidden_flops = 0;     ///< the part spent on pairs that the mask then hides
};

/// What a pass is.
struct DryPass {
  std::vector<Step> steps = {};
  int64_t kept = 0;  ///< bytes that the backward pass reads, attention's own aside
  bool has_learned_positions = false;
};

/// One pass over `w`, whose lengths are not 0. What the model reads is the token 0 everywhere.
/// parameters: those of `model`; of a run that recomputes only `kept` is known    Errors: data if
/// sequences are longer than positions are learned.
DryPass dry_pass(const TokenModel& model, nn::Parameters& parameters, const Workload& w,
                 nn::Run run);

}  // namespace heddle::inspect
