// Tokens on their way in and out: embeddings with positions, and the projection to the vocabulary.
#pragma once

#include <optional>

#include "heddle/nn/layers.h"
#include "heddle/nn/position.h"
#include "heddle/nn/token_rows.h"
#include "heddle/ops/loss.h"

namespace heddle::nn {

/// dropout(norm(table rows * scale + positions + types)), where positions, types and norm may be
/// absent.
class Embedding {
 public:
  struct Options {
    float scale = 1;
    double dropout = 0;
    Parameter* types = nullptr;  ///< [types, width]
    std::optional<LayerNorm> norm = {};
  };
  /// table: [vocab, width]; `name` is the site of the dropout.
  Embedding(std::string name, Parameter& table, Positions positions, Options options);

  Parameter& table() const { return *table_; }
  /// returns: [rows, width]. Errors: data if an id or a position is outside its table.
  Tensor operator()(const TokenRows& tokens, const Run& run) const;

 private:
  std::string name_;
  Parameter* table_;
  Positions positions_;
  Options options_;
};

class AdaptiveSoftmax;

/// h Wᵀ + b over the vocabulary; W is often the embedding table. Or an adaptive softmax, whose
/// log probabilities stand for logits.
class OutputProjection {
 public:
  /// weight: [vocab, width], bias: vocab elements or null
  explicit OutputProjection(Parameter& weight, Parameter* bias = nullptr)
      : weight_(&weight), bias_(bias) {}
  explicit OutputProjection(std::shared_ptr<const AdaptiveSoftmax> adaptive)
      : adaptive_(std::move(adaptive)) {}

  /// Whether it is one product: weight() and bias() exist, and parts of it cost their part.
  bool is_product() const { return adaptive_ == nullptr; }
  /// [vocab, width] and [vocab] (undefined if there is none). Errors: internal unless is_product().
  Tensor weight(const Run& run) const;
  Tensor bias() const;
  int64_t vocab() const;
  /// Of a product the parameter of weight(), else null.
  Parameter* parameter() const { return weight_; }
  /// The loss of the token after each row of h; see linear_cross_entropy().
  CrossEntropy loss(const Tensor& h, std::span<const int32_t> targets,
                    const CrossEntropyOptions& options, const Run& run) const;
  /// h: [rows, width]    returns: [rows, vocab], f32 unless recording: bf16 has 8 bits, too few to
  /// tell likely tokens apart. Without recording, columns [first, first + count) only, if a count
  /// is given; first is a multiple of 64.
  Tensor operator()(const Tensor& h, const Run& run, int64_t first = 0, int64_t count = -1) const;

 private:
  Parameter* weight_ = nullptr;
  Parameter* bias_ = nullptr;
  std::shared_ptr<const AdaptiveSoftmax> adaptive_;
};

}  // namespace heddle::nn
