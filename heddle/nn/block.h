// A block of a stack: self-attention, in decoders a look at a source, and a feed-forward layer,
// each a sublayer of the residual stream.
#pragma once

#include <variant>

#include "heddle/nn/attention.h"
#include "heddle/nn/mlp.h"

namespace heddle::nn {

/// Section 3.1 of Vaswani et al. 2017; the stream says whether norms stand before or after.
struct Block {
  SelfAttention attention;
  LayerNorm attention_norm;
  std::optional<CrossAttention> cross = {};  ///< of a decoder over a source
  std::optional<LayerNorm> cross_norm = {};
  std::variant<FeedForward, SparseExperts> mlp;
  LayerNorm mlp_norm;
  /// Of the dropout of what each sublayer adds.
  std::string attention_site = {}, cross_site = {}, mlp_site = {};
  double dropout = 0;  ///< of all
  /// Probability that a sample goes past a sublayer: stochastic depth (Huang et al. 2016).
  double drop_path = 0;

  void operator()(Residual& x, const TokenRows& tokens, const Run& run) const {
    (*this)(
        x, tokens, [](const Tensor& y) { return y; }, run);
  }
  /// `ask` is cross-attention over whole sentences or, token by token, over a cache.
  template <class Ask>
  void operator()(Residual& x, const TokenRows& tokens, const Ask& ask, const Run& run) const {
    const std::shared_ptr<const RowIds>& rows = tokens.rows;
    const auto leave = [&](const Tensor& sub, const std::string& site, const LayerNorm& norm) {
      const DropoutSpec spec = run.dropout(dropout, site, rows);
      if (drop_path == 0) return x.leave(sub, spec, norm);
      x.leave(heddle::dropout(sub, spec), run.drop_path(drop_path, site, rows), norm);
    };
    leave(attention(x.enter(attention_norm), tokens, run), attention_site, attention_norm);
    if (cross) leave(ask(x.enter(*cross_norm)), cross_site, *cross_norm);
    const auto of_mlp = [&](const auto& layer) { return layer(x.enter(mlp_norm), rows, run); };
    leave(std::visit(of_mlp, mlp), mlp_site, mlp_norm);
  }
};

/// run_stack() of such blocks without cross-attention, which outlive the pass and its backward
/// pass.
inline Tensor run_blocks(const std::string& prefix, Residual x, const std::vector<Block>& blocks,
                         const LayerNorm* last, const TokenRows& tokens, const Run& run) {
  return run_stack(
      prefix, std::move(x), blocks.size(), last, run,
      [&blocks, tokens, run](size_t i, Residual& y, auto) { blocks[i](y, tokens, run); });
}

}  // namespace heddle::nn
