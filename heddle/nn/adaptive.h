// Tokens by frequency: rare ones have narrower vectors, and are predicted in two steps.
#pragma once

#include "heddle/nn/embedding.h"

namespace heddle::nn {

/// Tokens with ids [begin, begin + tokens) and their vectors, as input or output.
struct TokenCluster {
  int64_t begin = 0, tokens = 0;
  Parameter* table = nullptr;  ///< holds the vectors from row `row` on: [any, narrow]
  int64_t row = 0;
  Parameter* projection = nullptr;  ///< [width, narrow], or null: narrow is the width
  Parameter* bias = nullptr;        ///< of an output, from element `row` on
};

/// Vectors of tokens, each by its cluster's table and projection, times `scale`.
/// Source: Baevski & Auli 2019, "Adaptive Input Representations for Neural Language Modeling".
class AdaptiveEmbedding {
 public:
  /// `clusters` cover the ids from 0 on, in order.
  AdaptiveEmbedding(std::string name, std::vector<TokenCluster> clusters, float scale)
      : name_(std::move(name)), clusters_(std::move(clusters)), scale_(scale) {}
  /// ids: [rows]    returns: [rows, width]    Errors: data if an id is in no cluster.
  Tensor operator()(std::span<const int32_t> ids, const Run& run) const;

 private:
  std::string name_;
  std::vector<TokenCluster> clusters_;
  float scale_;
};

/// log p of tokens: a softmax over the first cluster's tokens and one class for each other cluster,
/// times a softmax inside that cluster. Source: Grave et al. 2017, "Efficient softmax approximation
/// for GPUs".
class AdaptiveSoftmax {
 public:
  /// head_weight: [clusters - 1, narrow of the first] and head_bias: [clusters - 1], of the
  /// classes; null if there is one cluster.
  AdaptiveSoftmax(std::string name, std::vector<TokenCluster> clusters, Parameter* head_weight,
                  Parameter* head_bias)
      : name_(std::move(name)),
        clusters_(std::move(clusters)),
        head_weight_(head_weight),
        head_bias_(head_bias) {}

  int64_t vocab() const { return clusters_.back().begin + clusters_.back().tokens; }
  /// h: [rows, width]    returns: [rows, vocab] f32
  Tensor log_probabilities(const Tensor& h, const Run& run) const;
  /// The loss of targets: [rows], negative ones do not count; no logits beyond the clusters that
  /// they are in. Errors: data for a target beyond the tokens, or if smoothing or divergence is
  /// asked for: there is no distribution over all tokens to smooth.
  CrossEntropy loss(const Tensor& h, std::span<const int32_t> targets,
                    const CrossEntropyOptions& options, const Run& run) const;

 private:
  struct Layer {
    Tensor x, weight, bias;  // logits are x weightᵀ + bias
  };
  Layer layer(size_t cluster, const Tensor& h, const Run& run) const;

  std::string name_;
  std::vector<TokenCluster> clusters_;
  Parameter *head_weight_, *head_bias_;
};

/// How the tokens of a vocabulary are grouped, commonest first, and what the groups share.
/// Source: Baevski & Auli 2019, section 3; Dai et al. 2019, section 4.1.
struct AdaptiveOptions {
  int64_t vocab = 0;
  std::vector<int64_t> cutoffs = {};  ///< ids where the second group begins, the third, ..
  int64_t width = 0;                  ///< of the states
  int64_t narrow = 0;                 ///< of the vectors of the first group's tokens
  int64_t divisor = 1;                ///< each next group's are narrower by it; 1: all in one table
  bool is_tied = true;  ///< tokens are predicted by the tables that they are looked up in
  std::vector<bool> tied_projections = {};   ///< of each group: the same of its projection
  double std = 0.02, projection_std = 0.01;  ///< of the weights at the start

  int64_t groups() const { return static_cast<int64_t>(cutoffs.size()) + 1; }
  /// Width of the vectors of group i; at least 1 in a sound config.
  int64_t narrow_of(int64_t i) const;
  /// Ids of group i begin here; of group groups(): where all end.
  int64_t begin_of(int64_t i) const { return i == 0 ? 0 : i == groups() ? vocab : cutoffs[i - 1]; }
  bool has_projections() const { return divisor > 1 || narrow != width; }

  /// Errors: data, naming `source`, if cutoffs do not rise within the vocabulary or vectors narrow
  /// to nothing.
  void check(const std::string& source) const;
};

/// Parameters of an AdaptiveEmbedding under `in` (emb_layers.I.weight, emb_projs.I) and of an
/// AdaptiveSoftmax under `out` (out_layers.I.weight and bias, out_projs.I, cluster_weight,
/// cluster_bias), as Hugging Face's transfo-xl names them.
class AdaptiveTables {
 public:
  AdaptiveTables(Scope in, Scope out, AdaptiveOptions options)
      : in_(std::move(in)), out_(std::move(out)), o_(std::move(options)) {}

  AdaptiveEmbedding embedding() const;
  OutputProjection output() const;
  /// For TensorNames::tied, of a model that has both.
  std::vector<std::pair<std::string, std::string>> tied() const;

 private:
  std::vector<TokenCluster> clusters(bool is_out) const;
  Parameter* projection(const Scope& s, int64_t group, int64_t number) const;

  Scope in_, out_;
  AdaptiveOptions o_;
};

}  // namespace heddle::nn
