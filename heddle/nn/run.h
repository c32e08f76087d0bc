// What a forward pass is told beside its inputs.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "heddle/base/error.h"
#include "heddle/nn/attention_call.h"
#include "heddle/ops/dropout.h"
#include "heddle/tensor/dtype.h"

namespace heddle::nn {

/// Tensors of one attention call beside those of its scores: x, output [query rows, width], v [key
/// rows, key_heads * d], heads (side by side) [query rows, heads * d]. Of a recurrent decoder there
/// is no output: x are states, v the memory, and heads what the cell is given.
struct AttentionSteps {
  Tensor x, v, heads, output = {};
  bool has_projections = true;  ///< of x to queries, of what is asked to keys
};

/// Receives what a forward pass computes inside: for inspection and `heddle forward --all`.
struct Observer {
  /// A hidden state: "encoder_hidden_states.2", [rows, width].
  std::function<void(const std::string& name, const Tensor& x)> hidden;
  /// An attention call, before it is computed.
  std::function<void(const AttentionCall& call)> attention;
  /// What the heads give, side by side: [rows, heads * d]; what is returned goes on in its place.
  std::function<Tensor(const std::string& name, const Tensor& heads)> heads;
  /// The logits of a mixture's router: "router_logits.0", [rows, experts].
  std::function<void(const std::string& name, const Tensor& logits)> router;
  /// The rest of the call, after it: input x (of the queries), values v, heads, output.
  std::function<void(const std::string& name, const AttentionSteps& steps)> steps;
};

/// One forward pass: precision, randomness, inspection.
struct Run {
  DType compute = DType::f32;
  bool int8 = false;  ///< see Precision
  DropoutSource dropout = {};
  const Observer* observer = nullptr;
  /// Training keeps what enters each layer only and computes the rest again in the backward pass:
  /// less memory, about a third more time, the same bits. What the tokens of the pass point to must
  /// then live until the backward pass.
  bool recompute = false;

  /// Where mixtures of experts leave the logits of their routers, [rows, experts] a layer, with
  /// their gradients: for WithExperts::router_loss(). Null: nowhere. Lives until the backward pass
  /// if layers are computed again.
  std::vector<Tensor>* router_logits = nullptr;
  /// The same of attention to a source: mean_attention_weights() of one layer, [pairs], for losses
  /// that ask where it goes. Not both at once. Layers that are computed again keep it.
  std::shared_ptr<std::vector<Tensor>> source_weights = nullptr;
  int64_t weights_layer = 0;  ///< of the decoder, from 0: the one that leaves them
  /// Where layers leave something beside their output.
  std::vector<Tensor>* left() const {
    check(router_logits == nullptr || source_weights == nullptr, ErrorKind::internal,
          "a pass is to leave logits of routers and weights of attention; one of them is needed");
    return router_logits != nullptr ? router_logits : source_weights.get();
  }

  void use(const Precision& p) { compute = p.compute, int8 = p.int8; }
  /// Dropout that drops or keeps all rows of a sample.
  DropoutSpec drop_path(double p, const std::string& site,
                        const std::shared_ptr<const RowIds>& rows) const {
    DropoutSpec spec = dropout(p, site + ".drop_path", rows);
    spec.of_samples = true;
    return spec;
  }
};

}  // namespace heddle::nn
