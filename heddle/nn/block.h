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

  void operator()(Residual& x, const TokenRows& tokens, const Run& run) const {
    (*this)(
        x, tokens, [](const Tensor& y) { return y; }, run);
  }
  /// `ask` is cross-attention over whole sentences or, token by token, over a cache.
  template <class Ask>
  void operator()(Residual& x, const TokenRows& tokens, const Ask& ask, const Run& run) const {
    const std::shared_ptr<const RowIds>& rows = tokens.rows;
    x.leave(attention(x.enter(attention_norm), tokens, run),
            run.dropout(dropout, attention_site, rows), attention_norm);
    if (cross) {
      x.leave(ask(x.enter(*cross_norm)), run.dropout(dropout, cross_site, rows), *cross_norm);
    }
    const auto of_mlp = [&](const auto& layer) { return layer(x.enter(mlp_norm), rows, run); };
    x.leave(std::visit(of_mlp, mlp), run.dropout(dropout, mlp_site, rows), mlp_norm);
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
