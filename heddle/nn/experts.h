// A sparse mixture of experts in the place of a feed-forward sublayer.
#pragma once

#include "heddle/nn/mlp.h"

namespace heddle::nn {

/// Each row goes to the experts that its router likes best, and gets the sum of their outputs by
/// weight. Rows are sorted by expert (stable), so that each expert is products over its own rows;
/// outputs are added in the order of the experts. Source: Jiang et al. 2024, "Mixtral of Experts".
class SparseExperts {
 public:
  struct Options {
    int64_t width = 0, hidden = 0, experts = 8, chosen = 2;
    Activation activation = Activation::silu;
    Init init = {};
    std::string observed = {};  ///< the name of its router's logits: "router_logits.0"
  };
  /// Names: gate, and of expert i experts.i.w1 (gate), w3 (up), w2 (down).
  SparseExperts(const Scope& s, Options options);

  /// x: [rows, width]    returns: [rows, width]
  Tensor operator()(const Tensor& x, const Run& run) const;

 private:
  Options options_;
  Linear gate_;
  std::vector<FeedForward> experts_;
};

}  // namespace heddle::nn
