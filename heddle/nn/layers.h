// Linear layers and layer norm, of which the others are made.
#pragma once

#include "heddle/nn/parameters.h"
#include "heddle/nn/run.h"
#include "heddle/ops/matmul.h"
#include "heddle/ops/norm.h"

namespace heddle::nn {

/// y = x Wᵀ + b, weight [out, in] named "weight", bias [out] named "bias".
class Linear {
 public:
  struct Options {
    int64_t in = 0;
    int64_t out = 0;
    bool bias = true;
    Init init = Init::xavier_uniform(), bias_init = Init::zeros();
    bool is_head = false;           ///< its outputs are logits, boxes or the like, no hidden states
    bool gives_classes = false;     ///< an output is the logit of a class of the config's
    Layout layout = Layout::as_is;  ///< transposed: the checkpoint holds [in, out], as GPT-2's does
  };
  Linear(const Scope& s, const Options& o);
  /// Several linear layers of one input in one product: names q_proj, k_proj, v_proj, each `out`
  /// wide; the outputs stand side by side.
  Linear(const Scope& s, const std::vector<std::string>& names, const Options& o);
  /// The same with widths of their own; o.out does not count.
  Linear(const Scope& s, const std::vector<std::string>& names, const std::vector<int64_t>& outs,
         const Options& o);
  /// By parameters that are there: weight [out, in], bias [out] or null.
  Linear(std::string name, Parameter& weight, Parameter* bias = nullptr)
      : name_(std::move(name)), weight_(&weight), bias_(bias) {}

  /// x: [rows, in]    returns: [rows, out] (or [rows, n * out]), after the activation if one is
  /// given
  Tensor operator()(const Tensor& x, const Run& run, Activation kind = Activation::none) const;
  /// Columns [first, first + count) of what it gives.
  Tensor columns(const Tensor& x, int64_t first, int64_t count, const Run& run) const;

 private:
  std::string name_;
  Parameter* weight_;
  Parameter* bias_ = nullptr;
};

/// A weight as a run multiplies with it: in the dtype it computes in, or, where nothing is
/// recorded, f32 that the product rounds, to int8 if the run asks for it. constant: its identity
/// where it is constant, else 0; see GemmArgs::constant_b
struct WeightInUse {
  Tensor w;
  uint64_t constant = 0;
  bool int8 = false;

  WeightInUse(Parameter& weight, const Run& run);
};

/// activation(x Wᵀ + bias) by whatever form of W the run multiplies with; of the options,
/// constant_w and int8 are set here. While recording all outputs come, in the dtype of x. x: [rows,
/// in], weight: [out, in], bias: [out] or undefined    returns: [rows, out]
Tensor product(const Tensor& x, Parameter& weight, const Tensor& bias, const Run& run,
               LinearOptions options = {});

/// Layer norm with parameters "weight" (gamma) and "bias" (beta), or RMS norm, which has no beta.
class LayerNorm {
 public:
  LayerNorm(const Scope& s, int64_t width, double eps, bool is_rms = false);
  static LayerNorm rms(const Scope& s, int64_t width, double eps) { return {s, width, eps, true}; }
  Tensor operator()(const Tensor& x) const;
  /// h = x + dropout(sub) and its norm, in one pass.
  AddNorm add(const Tensor& x, const Tensor& sub, const DropoutSpec& spec) const;

 private:
  Tensor beta() const { return beta_ == nullptr ? Tensor() : beta_->in(DType::f32); }

  std::string name_;
  Parameter *gamma_, *beta_ = nullptr;
  float eps_;
};

/// The end of an attention call of that name: the output projection of steps.heads, or of what the
/// observer puts in their place; then shows it the steps. returns: [query rows, width]
Tensor project_heads(const Linear& out, const std::string& name, AttentionSteps steps,
                     const Run& run);

}  // namespace heddle::nn
