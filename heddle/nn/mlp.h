// The feed-forward sublayer.
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

  /// x: [rows, width]    returns: [rows, width]
  Tensor operator()(const Tensor& x, const std::shared_ptr<const RowIds>& rows,
                    const Run& run) const;

 private:
  std::string name_;
  Linear in_, out_;
  Options options_;
};

}  // namespace heddle::nn
