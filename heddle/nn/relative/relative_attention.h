// Layers of attention by content and distance over a memory, as Transformer-XL and XLNet have it.
#pragma once

#include "heddle/nn/mlp.h"
#include "heddle/nn/position.h"
#include "heddle/nn/relative/relative_rows.h"
#include "heddle/nn/token_rows.h"

namespace heddle::nn {

/// What the distances of one pass look like before each layer projects them.
struct Distances {
  int32_t farthest = 0;  ///< see RelativeOptions
  Tensor table;          ///< [distances, width] sinusoids: sines, then cosines
};
/// Sinusoids of the distances farthest .. nearest, both at most `clamp` from 0 if that is above 0.
/// Source: Vaswani et al. 2017, section 3.5, of positions that may be negative.
Distances distances(int32_t farthest, int32_t nearest, int64_t clamp, int64_t width, DType dtype);

/// Drops numbers of each distance on its own.
void drop(Distances& distances, double p, const Run& run);

/// States that go through the layers side by side and ask the same keys: those of the tokens, and
/// XLNet's predictions.
struct RelativeStream {
  RelativeRows rows;
  std::shared_ptr<const RowIds> ids = nullptr;  ///< of its queries, for dropout
  /// Before its names: "target_" where an observer is shown "target_attentions.0".
  std::string prefix = {};
};

/// What all layers of one pass see.
struct RelativePass {
  TokenRows tokens;
  /// States before the tokens, layer by layer. Of tokens that continue a cache: one row a layer,
  /// that of a position before the first token.
  Memory memory = {};
  std::vector<int32_t> cache_rows = {};  ///< of those tokens: see rows_of_cache()
  Distances distances = {};
  std::vector<RelativeStream> streams = {};  ///< the tokens' own comes first
};

/// softmax(((q + u)·k + (q + v)·r) / sqrt(d)) v for each head: u and v are the biases of content
/// and distance, r a projection of the distances' sinusoids; XLNet adds (q + s)·e for the embedding
/// e of the own type or of another. Source: Dai et al. 2019, "Transformer-XL", section 3.3; Yang et
/// al. 2019, "XLNet", section 2.5.
class RelativeAttention {
 public:
  struct Options {
    int64_t heads = 1;
    double dropout = 0;             ///< of the weights
    int64_t layer = 0;              ///< of the cache, and of the observed name "attentions.0"
    Parameter* content = nullptr;   ///< u: heads * d values
    Parameter* distance = nullptr;  ///< v
    Parameter* type = nullptr;      ///< s, or null
    Parameter* types = nullptr;     ///< e: [2, heads * d], of the own type and of another
  };
  /// qkv: from width to queries, keys and values side by side, each heads * d wide; r: from width
  /// to heads * d; out: from there to width. `name` is the site of the dropout.
  RelativeAttention(std::string name, Linear qkv, Linear r, Linear out, Options options);

  /// x: the states of each stream, [its rows, width]; before: what stands before the tokens, [rows
  /// of pass.memory, width]    returns: [its rows, width] for each stream. Keys are those of the
  /// memory and of the first stream's states.
  std::vector<Tensor> operator()(std::span<const Tensor> x, const Tensor& before,
                                 const RelativePass& pass, const Run& run) const;

 private:
  /// [key rows, 2 * heads * d]: keys, then values.
  Tensor keys(const Tensor& own, const Tensor& before, const RelativePass& pass,
              const Run& run) const;
  /// The same of tokens that continue a cache. before: [1, 2 * heads * d]
  Tensor cached_keys(const Tensor& own, const Tensor& before, const RelativePass& pass) const;
  /// (q + s)·e for both embeddings e and each head: [rows, 2 * heads] f32.
  Tensor type_scores(const Tensor& q, const Run& run) const;
  Tensor attend(const std::string& observed, const RelativeStream& stream, const RelativeInputs& x,
                int32_t farthest, const Run& run) const;

  std::string name_;
  Linear qkv_, r_, out_;
  Options options_;
};

/// Attention, then feed-forward, each a sublayer of the residual stream.
struct RelativeLayer {
  RelativeAttention attention;
  LayerNorm attention_norm;
  FeedForward ff;
  LayerNorm ff_norm;
  std::string site;     ///< of the sublayers' dropout: SITE.attn, SITE.ff
  double dropout = 0;   ///< of both
  bool is_pre = false;  ///< norms are before the sublayers, not after

  /// x: the states of each stream of the pass; before: see RelativePass::memory, of this layer
  /// returns: what x becomes
  std::vector<Tensor> operator()(std::span<const Tensor> x, const Tensor& before,
                                 const RelativePass& pass, const Run& run) const;
};

/// All layers. x: the states of each stream, [its rows, width]. What the tokens' memory becomes, if
/// they have one, `keep` says of what entered each layer in the first stream. An observer sees the
/// streams by turns: hidden_states.0 of one, or hidden_states.0 and target_hidden_states.1 of two,
/// as Hugging Face counts them. returns: what x becomes
std::vector<Tensor> run_relative_stack(const std::vector<RelativeLayer>& layers,
                                       std::vector<Tensor> x,
                                       const std::shared_ptr<const RelativePass>& pass,
                                       const Memory::Keep& keep, const Run& run);

}  // namespace heddle::nn
