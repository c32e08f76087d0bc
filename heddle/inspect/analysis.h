// What a model costs: shapes at each step, parameters, FLOPs and bytes, by dry runs. What a layer
// of each kind costs over n positions of width d: Vaswani et al. 2017, table 1.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "heddle/base/json/json.h"
#include "heddle/inspect/pages/page.h"
#include "heddle/models/image_model.h"

namespace heddle::inspect {

/// How much goes through the model at once.
struct Workload {
  int64_t batch = 1;  ///< sequences
  int64_t source = 0;  ///< tokens of each (of an encoder–decoder: of a source); 0: as the model has
  int64_t target = 0;    ///< tokens of each translation; 0: as many as source; of captions 16
  ImageSize image = {};  ///< of a model that reads images, of which `batch` are read: their size
                         ///< (0: that which it was made for); `source` is then its to say
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

/// One pass over `w`, whose lengths are not 0. What the model reads is the token 0 everywhere, or
/// black images.
/// parameters: those of `model`; of a run that recomputes only `kept` is known    Errors: data if
/// sequences are longer than positions are learned.
DryPass dry_pass(const Model& model, nn::Parameters& parameters, const Workload& w, nn::Run run);

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
  std::string name = {}, type = {};  ///< as analyze() was given it; model_type
  int64_t width = 0;                 ///< of the states
  bool has_source = false;           ///< an encoder–decoder
  bool has_image = false;            ///< it reads images; workload.source are the states of each
  Workload workload = {};            ///< with its zeros filled in
  std::vector<Step> steps = {};
  int64_t parameters = 0, matrix_parameters = 0;
  std::vector<int64_t> gradient_buckets = {};  ///< gradients that leave a rank together
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

/// Nothing is computed and no memory taken, whatever the size. name: of the model, for messages
/// Errors: usage for a workload below 1; data for sequences that a table of positions does not
/// reach, or sums that do not fit into 64 bits.
Analysis analyze(const ModelConfig& config, const std::string& name, const Workload& workload);

/// All of it for programs.
Json to_json(const Analysis& analysis);

/// The analysis as a page, with the tables of layers and of sizes of images (as `heddle analyze
/// --json` has them), and that of ranks, if it is not null. name: of the model, as find_size() was
/// given it.
Page analysis_page(const std::string& name, const Analysis& analysis, const Json& layers,
                   const Json& sizes, const Json& ranks);

/// The sizes that the table is for.
struct LayerSizes {
  int64_t n = 512;     ///< positions
  int64_t d = 512;     ///< width
  int64_t kernel = 3;  ///< positions that a convolution sees
  int64_t reach = 64;  ///< positions that restricted attention sees
};

/// A kind of layer: the formula and its value for the sizes.
struct LayerCost {
  std::string layer;       ///< "self-attention"
  std::string operations;  ///< "n^2 d": multiplications, but for a constant
  double operation_count = 0;
  std::string sequential;  ///< "n": steps that must wait for each other
  double sequential_count = 0;
  std::string path;  ///< "log_k n": layers or steps between the two positions farthest apart
  double path_count = 0;
};

/// Recurrent, convolutional (paths by dilated layers), self-attention, and self-attention
/// restricted to a neighbourhood. A kernel or reach beyond n counts as n.
/// Errors: usage if a size is below 1, or the kernel below 2.
std::vector<LayerCost> layer_costs(const LayerSizes& sizes);

}  // namespace heddle::inspect
