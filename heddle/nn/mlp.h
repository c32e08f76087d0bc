// The feed-forward sublayer, and a sparse mixture of them in its place.
#pragma once

#include "heddle/nn/layers.h"
#include "heddle/ops/elementwise.h"

namespace heddle::nn {

/// The activation of a Hugging Face name: relu, gelu, gelu_new (also gelu_pytorch_tanh, gelu_fast),
/// silu (also swish), tanh. Errors: data for another.
Activation activation_of(const std::string& name);
/// The names that activation_of() takes, for the rule of a config's field.
std::vector<std::string> activation_names();

/// activation(x W1 + b1) W2 + b2: section 3.3 of Vaswani et al. 2017.
class FeedForward {
 public:
  struct Options {
    Activation activation = Activation::relu;
    double dropout = 0;  ///< after the activation
    /// (activation(x W1) * (x W2)) W3, where the first layer gives x W1 and x W2 side by side.
    /// Source: Shazeer 2020, "GLU Variants Improve Transformer".
    bool is_gated = false;
  };
  /// `name` is the site of the dropout.
  FeedForward(std::string name, Linear in, Linear out, Options options);

  /// x: [rows, width]; stream: before the site, where several go through a layer
  /// returns: [rows, width]
  Tensor operator()(const Tensor& x, const std::shared_ptr<const RowIds>& rows, const Run& run,
                    const std::string& stream = {}) const;

 private:
  std::string name_;
  Linear in_, out_;
  Options options_;
};

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

  /// x: [rows, width]    returns: [rows, width]. Nothing is dropped.
  Tensor operator()(const Tensor& x, const std::shared_ptr<const RowIds>&, const Run& run) const;

 private:
  Options options_;
  Linear gate_;
  std::vector<FeedForward> experts_;
};

}  // namespace heddle::nn
