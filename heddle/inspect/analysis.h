// What a model costs: shapes at each step, parameters, FLOPs and bytes, by arithmetic alone.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "heddle/base/json/json.h"
#include "heddle/inspect/model_plan.h"

namespace heddle::inspect {

/// How much goes through the model at once.
struct Workload {
  int64_t batch = 1;  ///< sequences
  int64_t source =
      0;  ///< tokens of each (of the only stack, or of the encoder); 0: as the model has
  int64_t target = 0;  ///< tokens of each translation; 0: as many as source
  int64_t window = 0;  ///< self-attention restricted to blocks of so many positions; 0: all see all
};

/// One step of the forward pass, as one layer does it.
struct Step {
  std::string part = {};  ///< "encoder input", "encoder layer", "output"
  std::string name = {};  ///< "queries, keys, values"
  std::vector<int64_t> in = {},
                       out = {};  ///< shapes of what comes in and goes out, of the whole batch
  int64_t times = 1;              ///< layers that do it
  // Of one layer:
  int64_t parameters = 0;
  int64_t flops = 0;          ///< of products, a multiplication and an addition each
  bool is_attention = false;  ///< a product of activations, not with a weight
  int64_t hidden_flops = 0;   ///< the part spent on pairs that the mask then hides
  int64_t kept = 0;           ///< scalars that the backward pass reads
  int64_t kept_f32 = 0;       ///< more of them, in f32 whatever the format of numbers is
  int64_t matrix = 0;         ///< entries of attention matrices; flash attention stores none
  int64_t matrix_rows = 0;    ///< their rows: flash attention stores a number for each
};

/// Bytes in both formats of numbers.
struct Bytes {
  int64_t f32 = 0, bf16 = 0;
};

/// Attention matrices: what the plain definition stores, and what flash attention stores instead.
struct AttentionMemory {
  int64_t entries = 0;    ///< of the largest matrix: one head, one sequence
  int64_t matrices = 0;   ///< heads of all layers, sequences and kinds of attention
  Bytes head = {};        ///< that matrix
  Bytes all = {};         ///< all of them: kept for the backward pass
  Bytes one_layer = {};   ///< those of the dearest layer: at once in inference
  Bytes flash = {};       ///< log-sum-exp of each row, f32 in both: kept for the backward pass
  bool has_flash = true;  ///< false: these scores have no flash attention, so the plain one runs
};

struct Analysis {
  ModelPlan plan = {};
  Workload workload = {};  ///< with its zeros filled in
  std::vector<Step> steps = {};
  int64_t parameters = 0, matrix_parameters = 0;
  // FLOPs of the batch.
  int64_t forward_flops = 0;
  int64_t attention_flops = 0;  ///< the part of forward_flops that grows with the square of length
  int64_t training_flops = 0;   ///< forward and backward, plain attention
  int64_t training_flash_flops = 0;  ///< the same where scores are computed again
  int64_t decoding_flops = 0;        ///< token by token over caches; 0 if the model writes nothing
  double uncached_decoding_flops = 0;  ///< the same when all is computed again for each token
  // Memory.
  Bytes weights = {};     ///< to compute with
  Bytes optimizer = {};   ///< beside them in training: gradients, both moments of Adam, f32 masters
  Bytes kept = {};        ///< activations that the backward pass reads, attention matrices aside
  Bytes recomputed = {};  ///< the same with --recompute: what enters each layer
  Bytes at_once = {};     ///< widest step of a forward pass without gradients, matrices aside
  AttentionMemory attention = {};
  Bytes cache = {};         ///< keys and values of all tokens of the batch
  Bytes cache_token = {};   ///< of a token that is written
  Bytes cache_source = {};  ///< of a token of the source
};

/// Errors: usage for a workload below 1; data for sequences that a table of positions does not
/// reach.
Analysis analyze(const ModelPlan& plan, const Workload& workload);

/// All of it for programs.
Json to_json(const Analysis& analysis);

/// The analysis as a page, with the table of layers (as `heddle analyze --json` has it). name: of
/// the model, as find_plan() was given it.    Errors: those of write_page().
void write_analysis_page(const std::string& path, const std::string& name, const Analysis& analysis,
                         const Json& layers);

}  // namespace heddle::inspect
