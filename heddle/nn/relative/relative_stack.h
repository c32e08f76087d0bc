// A stack of layers of relative attention, which one or two streams of states go through.
#pragma once

#include "heddle/nn/mlp.h"
#include "heddle/nn/relative/relative_attention.h"

namespace heddle::nn {

/// Attention, then feed-forward, each a sublayer of the residual stream.
struct RelativeLayer {
  RelativeAttention attention;
  LayerNorm attention_norm;
  FeedForward ff;
  LayerNorm ff_norm;
  std::string site;     ///< of the sublayers' dropout
  double dropout = 0;   ///< of both
  bool is_pre = false;  ///< norms are before the sublayers, not after

  /// x: the states of each stream of the pass; before: see RelativePass::memory, of this layer
  /// returns: what x becomes
  std::vector<Tensor> operator()(std::span<const Tensor> x, const Tensor& before,
                                 const RelativePass& pass, const Run& run) const;
};

/// All layers. x: the states of each stream, [its rows, width]; `entered`, if not null, receives
/// what entered each layer in the first, for Memory::next(). An observer sees the streams by turns:
/// hidden_states.0 of one, or hidden_states.0 and target_hidden_states.1 of two, as Hugging Face
/// counts them. returns: what x becomes
std::vector<Tensor> run_relative_stack(const std::vector<RelativeLayer>& layers,
                                       std::vector<Tensor> x,
                                       const std::shared_ptr<const RelativePass>& pass,
                                       const Run& run, std::vector<Tensor>* entered);

}  // namespace heddle::nn
