// Attention whose queries and keys carry positions that its values do not.
#pragma once

#include "heddle/nn/attention.h"

namespace heddle::nn {

/// Multi-head attention of three inputs of one width. Names: q_proj, k_proj, v_proj, out_proj, and,
/// of spatial scores, spatial_q_proj and spatial_k_proj.
/// Source: Carion et al. 2020, "End-to-End Object Detection with Transformers", appendix A.4; Meng
/// et al. 2021, "Conditional DETR for Fast Training Convergence", section 3.3.
class PositionedAttention {
 public:
  struct Options {
    int64_t width = 0, heads = 1;
    bool is_cross = false;  ///< keys come from elsewhere than queries
    /// A score is that of states plus that of positions, without products of one with the other; of
    /// cross-attention alone.
    bool has_spatial_scores = false;
    double dropout = 0;  ///< of the weights
    Init init = Init::xavier_uniform();
    std::string observed = {};  ///< the name that an observer is given: "cross_attentions.0"
  };
  PositionedAttention(const Scope& s, const Options& options);

  struct Inputs {
    Tensor queries;    ///< [rows, width], with their positions
    Tensor keys = {};  ///< [key rows, width], with theirs; undefined where they are the queries
    Tensor values;     ///< [key rows, width], without
    /// Of spatial scores: [rows, width], where each query looks, and [key rows, width].
    Tensor spatial_queries = {}, spatial_keys = {};
  };
  /// Who asks whom, see CrossAttention::Sides.
  using Sides = CrossAttention::Sides;
  /// returns: [rows, width]. `visibility`: see AttentionOptions; null: all keys are seen.
  Tensor operator()(const Inputs& inputs, const Sides& sides, const Run& run,
                    const std::shared_ptr<const Visibility>& visibility = nullptr) const;

 private:
  std::string name_;
  Options options_;
  Linear q_;                 // and keys behind them, where they have one input
  std::optional<Linear> k_;  // of cross-attention
  std::optional<Linear> spatial_q_, spatial_k_;
  Linear v_, out_;
};

}  // namespace heddle::nn
