// How sublayers make a stack: the residual stream that joins them, a block of them (self-attention,
// in decoders a look at a source, a feed-forward layer), and the run through all layers.
#pragma once

#include <variant>

#include "heddle/nn/attention.h"
#include "heddle/nn/mlp.h"

namespace heddle::nn {

/// The residual stream x of a stack of sublayers, with the norm before (pre) or after (post) each.
/// The sum of a pre-norm sublayer is put off until the next norm, where both are one pass.
class Residual {
 public:
  Residual(Tensor x, bool is_pre) : x_(std::move(x)), is_pre_(is_pre) {}

  /// What the next sublayer reads: norm(x) or x.
  Tensor enter(const LayerNorm& norm);
  /// Takes the sublayer's output: x + dropout(sub), and its norm if post.
  void leave(const Tensor& sub, const DropoutSpec& spec, const LayerNorm& norm);
  /// The same where some samples go past the sublayer; past: see Run::drop_path().
  void leave(const Tensor& sub, const DropoutSpec& spec, const DropoutSpec& past,
             const LayerNorm& norm);
  /// Goes on with these rows alone, behind enter().
  void keep_rows(std::span<const int32_t> rows);
  /// The stream with nothing put off: [rows, width].
  Tensor value();
  /// A layer whose inside is not kept, see heddle::recompute(). `outside`: what else it reads that
  /// has a gradient; `left`: where it adds what else it gives that has one, see Run::left(), or
  /// null.
  using Layer = std::function<void(Residual& x, std::span<const Tensor> outside)>;
  void pass_recomputed(const Layer& layer, std::span<const Tensor> outside,
                       std::vector<Tensor>* left);

 private:
  Tensor x_, pending_;
  DropoutSpec spec_;
  bool is_pre_;
};

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
      x.leave(sub, run.dropout(dropout, site, rows), run.drop_path(drop_path, site, rows), norm);
    };
    const Tensor attended = attention(x.enter(attention_norm), tokens, run);
    if (!tokens.answers.empty()) x.keep_rows(tokens.answering());
    leave(attended, attention_site, attention_norm);
    if (cross) leave(ask(x.enter(*cross_norm)), cross_site, *cross_norm);
    const auto of_mlp = [&](const auto& layer) { return layer(x.enter(mlp_norm), rows, run); };
    leave(std::visit(of_mlp, mlp), mlp_site, mlp_norm);
  }
};

/// Shows a hidden state to the observer, if there is one.
void observe(const Run& run, const std::string& name, Residual& x);

/// n layers named by their number: layer(s / i, i).
template <class Make>
auto make_layers(const Scope& s, int64_t n, const Make& layer) {
  std::vector<decltype(layer(s, n))> layers;
  for (int64_t i = 0; i < n; ++i) layers.push_back(layer(s / i, i));
  return layers;
}

/// A stack of n layers: layer(i, x, outside) for each, then the last norm, if not null. An observer
/// sees PREFIXhidden_states.0 (the input) to PREFIXhidden_states.n (after the last norm), as
/// Hugging Face counts them. `layer` may be called again in the backward pass (Run::recompute), so
/// it owns what it needs; `outside` are tensors that it reads beside x. returns: [rows, width]
template <class Layer>
Tensor run_stack(const std::string& prefix, Residual x, size_t n, const LayerNorm* last,
                 const Run& run, const Layer& layer, std::span<const Tensor> outside = {}) {
  const auto name = [&](size_t i) { return fmt::format("{}hidden_states.{}", prefix, i); };
  for (size_t i = 0; i < n; ++i) {
    observe(run, name(i), x);
    if (run.recompute && is_recording()) {
      x.pass_recomputed([layer, i](Residual& y, std::span<const Tensor> o) { layer(i, y, o); },
                        outside, run.left());
    } else {
      layer(i, x, outside);
    }
  }
  Residual y(last != nullptr ? x.enter(*last) : x.value(), false);
  observe(run, name(n), y);
  return y.value();
}

/// run_stack() of blocks without cross-attention, which outlive the pass and its backward
/// pass. Behind the attention of the last block only tokens.answers go on.
Tensor run_blocks(const std::string& prefix, Residual x, const std::vector<Block>& blocks,
                  const LayerNorm* last, const TokenRows& tokens, const Run& run);

}  // namespace heddle::nn
