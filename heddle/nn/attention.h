// Multi-head attention: projections, heads, output projection; over tokens, or over any queries,
// keys and values.
#pragma once

#include "heddle/nn/layers.h"
#include "heddle/nn/token_rows.h"
#include "heddle/ops/rope.h"
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

/// A table of biases that layers may share, see heddle::RelativeBias.
struct BiasTable {
  Parameter* table;  ///< [buckets, heads]
  std::shared_ptr<const std::vector<int32_t>> buckets;
  std::shared_ptr<const std::vector<int32_t>> codes = nullptr;
};

/// Section 3.2.2 of Vaswani et al. 2017, over the tokens of the sequence itself: project, attend
/// head by head, project again.
class SelfAttention {
 public:
  struct Options {
    int64_t heads = 1;
    int64_t key_heads = 0;  ///< see AttentionOptions::key_heads
    bool is_causal = false;
    int64_t window = 0;     ///< a token sees what is less than so many positions behind it; 0: all
    double dropout = 0;     ///< of the weights
    std::string site = {};  ///< of the dropout; empty: the layer's name
    float scale = 0;        ///< of the scores; 0: 1 / sqrt(width of a head)
    Scoring scoring = Scoring::dot;
    Parameter* score = nullptr;                       ///< see AttentionOptions::score_weight
    std::shared_ptr<const BiasTable> bias = nullptr;  ///< of the scores, by relative position
    /// Of each head's queries and keys over the width of the head, before they are turned.
    std::optional<LayerNorm> query_norm = {}, key_norm = {};
    std::shared_ptr<const RopeTable> rope = nullptr;  ///< rotary positions; null: none
    int64_t layer = 0;                                ///< its layer in a KvCache
    std::string observed = {};  ///< the name that an observer is given: "attentions.0"
  };
  /// `qkv` gives queries, keys and values side by side.
  SelfAttention(std::string name, Linear qkv, Linear out, Options options);

  /// x: [rows, width], a row for each of `tokens`    returns: [rows, width]. Those that continue
  /// sequences add their keys and values to the cache, which holds those of the tokens before, and
  /// get the rows of a pass over the whole sequences, bit for bit, without gradient.
  Tensor operator()(const Tensor& x, const TokenRows& tokens, const Run& run) const;

 private:
  struct Projected {
    Tensor qkv;
    int64_t queries, keys;  ///< columns of q, and of each of k and v
  };
  Projected project(const Tensor& x, std::span<const int32_t> positions, const Run& run) const;
  Tensor continued(const Tensor& x, const TokenRows& tokens, const Run& run) const;

  std::string name_;
  Linear qkv_, out_;
  Options options_;
};

/// The same over the tokens of another sequence.
class CrossAttention {
 public:
  /// Neither causal nor windowed, without biases, head norms and rotary positions.
  using Options = SelfAttention::Options;
  /// `kv` gives keys and values side by side.
  CrossAttention(std::string name, Linear q, Linear kv, Linear out, Options options);

  /// Keys and values of a memory: [source rows, width] to [source rows, 2 * width].
  Tensor keys_and_values(const Tensor& memory, const Run& run) const { return kv_(memory, run); }
  /// Who asks: sequence i of `queries` attends to sequence i of `source`.
  struct Sides {
    const Segments* queries = nullptr;
    const Segments* source = nullptr;
    std::shared_ptr<const RowIds> rows = nullptr;  ///< of the queries
  };
  /// x: [rows, width], memory_kv: [source rows, 2 * width]    returns: [rows, width]
  Tensor operator()(const Tensor& x, const Tensor& memory_kv, const Sides& sides,
                    const Run& run) const;
  /// The same over keys and values in a cache. No gradient.
  Tensor operator()(const Tensor& x, const RowCache& kept, const CachedKeys& keys,
                    const Run& run) const;

 private:
  std::string name_;
  Linear q_, kv_, out_;
  Options options_;
};

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
