// Tokens by frequency: rare ones have narrower vectors, and are predicted in two steps.
#pragma once

#include "heddle/nn/layers.h"
#include "heddle/nn/token_rows.h"
#include "heddle/ops/loss.h"

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

}  // namespace heddle::nn
