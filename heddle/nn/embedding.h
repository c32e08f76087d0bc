// Words on their way in and out: embeddings with positions, and the projection to the vocabulary.
#pragma once

#include <optional>

#include "heddle/nn/layers.h"
#include "heddle/nn/position.h"
#include "heddle/nn/words.h"

namespace heddle::nn {

/// dropout(norm(words * scale + positions + types)), where positions, types and norm may be absent.
class Embedding {
 public:
  struct Options {
    float scale = 1;
    double dropout = 0;
    Parameter* types = nullptr;  ///< [types, width]
    std::optional<LayerNorm> norm = {};
  };
  /// words: [vocab, width]; `name` is the site of the dropout.
  Embedding(std::string name, Parameter& words, Positions positions, Options options);

  Parameter& words() const { return *words_; }
  /// returns: [rows, width]. Errors: data if an id or a place is outside its table.
  Tensor operator()(const WordRows& words, const Run& run) const;

 private:
  std::string name_;
  Parameter* words_;
  Positions positions_;
  Options options_;
};

/// h Wᵀ + b over the vocabulary; W is often the table of the words.
class WordOutput {
 public:
  /// weight: [vocab, width], bias: vocab elements or null
  explicit WordOutput(Parameter& weight, Parameter* bias = nullptr)
      : weight_(&weight), bias_(bias) {}

  /// [vocab, width] and [vocab] (undefined if there is none), for the fused loss.
  Tensor weight(const Run& run) const { return weight_->in(run.compute); }
  Tensor bias() const;
  int64_t vocab() const { return weight_->shape()[0]; }
  /// h: [rows, width]    returns: [rows, vocab], f32 unless recording: bf16 has 8 bits, too few to
  /// tell likely words apart. Without recording, columns [first, first + count) only, if a count is
  /// given; first is a multiple of 64.
  Tensor operator()(const Tensor& h, const Run& run, int64_t first = 0, int64_t count = -1) const;

 private:
  Parameter* weight_;
  Parameter* bias_;
};

}  // namespace heddle::nn
