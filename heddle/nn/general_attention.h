// Attention on its own: queries, keys and values of any numbers and widths.
#pragma once

#include "heddle/nn/layers.h"
#include "heddle/ops/scoring.h"

namespace heddle::nn {

/// A scoring function by its config value: scaled_dot, dot, additive or linear.
struct ScoringChoice {
  Scoring kind = Scoring::dot;
  float scale = 0;  ///< of dot products; 0: 1 / sqrt(width of a head)
  /// Weights a head beyond the projections, for heads of width d: 0, d or 2 d.
  int64_t weights(int64_t d) const;
};
/// Errors: data for another name.
ScoringChoice scoring_of(const std::string& name);
std::vector<std::string> scoring_names();
/// The weights [heads, n] named "score.weight" under `s`, or null if the scoring has none.
Parameter* score_parameter(const Scope& s, const ScoringChoice& scoring, int64_t heads, int64_t d);

/// Multi-head attention whose three inputs may come from anywhere: project each to heads x
/// head_width, score, mask, softmax, weighted sum, project to out_width. Self-attention is the case
/// of three equal inputs. Source: Vaswani et al. 2017, section 3.2.2.
class GeneralAttention {
 public:
  struct Options {
    int64_t query_width = 0, key_width = 0, value_width = 0;  ///< D_q, D_k, D_v
    int64_t heads = 1, head_width = 64;
    int64_t out_width = 0;  ///< 0: query_width
    bool bias = true;
    std::string scoring = "scaled_dot";
  };
  /// Names: q_proj, k_proj, v_proj, out_proj, and score.weight if the scoring has weights.
  GeneralAttention(const Scope& s, const Options& options);

  /// queries: [n, D_q], keys: [m, D_k], values: [m, D_v], mask: n * m values, row by row, 0: the
  /// query does not see the key; empty: it sees all    returns: [n, out_width]
  /// Without mask and with dot products by the fused kernel, else by plain ops. Errors: shape if
  /// sizes do not fit.
  Tensor operator()(const Tensor& queries, const Tensor& keys, const Tensor& values,
                    std::span<const uint8_t> mask, const Run& run) const;

 private:
  Linear q_, k_, v_, out_;
  Parameter* score_;
  ScoringChoice scoring_;
  int64_t heads_;
};

}  // namespace heddle::nn
