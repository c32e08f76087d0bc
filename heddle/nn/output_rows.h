// The output projection of some tokens, as a product of its own.
#pragma once

#include <cstdint>
#include <span>

#include "heddle/nn/embedding.h"

namespace heddle::nn {

/// h Wᵀ + b over some tokens of the vocabulary, whose rows of W lie together. Weights of few bits
/// are taken as the numbers that they stand for. For runs that record nothing.
class OutputRows {
 public:
  /// ids: of the vocabulary. Errors: usage if the output is no one product (an adaptive softmax).
  OutputRows(const OutputProjection& output, std::span<const int32_t> ids, const Run& run);
  OutputRows(const OutputRows&) = delete;
  OutputRows& operator=(const OutputRows&) = delete;
  ~OutputRows();

  /// h: [rows, width]    returns: [rows, ids], f32: the bits that output(h) has in these columns,
  /// unless its weights are of few bits
  Tensor operator()(const Tensor& h) const;

 private:
  Tensor weight_, bias_;
  uint64_t constant_;
  bool int8_;
};

}  // namespace heddle::nn
