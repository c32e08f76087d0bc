// A block of a stack: self-attention, then a feed-forward layer, in the residual stream.
#pragma once

#include <variant>

#include "heddle/nn/attention.h"
#include "heddle/nn/mlp.h"

namespace heddle::nn {

/// Section 3.1 of Vaswani et al. 2017; the stream says whether norms stand before or after.
struct Block {
  SelfAttention attention;
  LayerNorm attention_norm;
  std::variant<FeedForward, SparseExperts> mlp;
  LayerNorm mlp_norm;
  std::string attention_site = {}, mlp_site = {};  ///< of the dropout of what each adds
  double dropout = 0;                              ///< of both

  void operator()(Residual& x, const TokenRows& tokens, const Run& run) const {
    x.leave(attention(x.enter(attention_norm), tokens, run),
            run.dropout(dropout, attention_site, tokens.rows), attention_norm);
    const auto of_mlp = [&](const auto& layer) {
      return layer(x.enter(mlp_norm), tokens.rows, run);
    };
    x.leave(std::visit(of_mlp, mlp), run.dropout(dropout, mlp_site, tokens.rows), mlp_norm);
  }
};

}  // namespace heddle::nn
