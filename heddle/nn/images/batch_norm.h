// Norms of images' pixels: over the batch, with running statistics, or over each image.
#pragma once

#include "heddle/nn/parameters.h"
#include "heddle/nn/run.h"
#include "heddle/ops/images/batch_norm.h"
#include "heddle/tensor/segments.h"

namespace heddle::nn {

/// What stands behind a norm in the same pass.
struct NormTail {
  Tensor added = {};  ///< as x; undefined: nothing
  Activation activation = Activation::none;
  bool may_overwrite_added = false;  ///< see LinearOptions
};

/// Parameters "weight" and "bias", buffers "running_mean", "running_var" and, unless it is frozen,
/// "num_batches_tracked".
/// A forward pass of training takes the statistics of its rows and moves the running ones a tenth
/// of the way towards them (the variance unbiased), as torch does: once for each part of a batch
/// that is computed at a time, and once if layers are computed again. All others take the running
/// ones; so does training if they are fixed. The one place where an image's result depends on
/// others, in training only.
class BatchNorm {
 public:
  struct Options {
    int64_t width = 0;
    double eps = 1e-5;
    /// Statistics, gains and biases stay as they are: FrozenBatchNorm2d of detectors.
    bool is_frozen = false;
  };
  BatchNorm(const Scope& s, const Options& o);

  /// activation(norm(x) + added). x: [rows, width]    returns: the shape and dtype of x
  Tensor operator()(const Tensor& x, const NormTail& tail, const Run& run) const;
  /// What it does by the running statistics: y = scale * x + shift, both [width] f32.
  std::pair<Tensor, Tensor> line() const;
  /// Another one after each change of what line() gives.
  std::array<uint64_t, 4> identity() const;

 private:
  void update(const ColumnMoments& of, int64_t rows) const;
  ColumnMoments running() const { return {mean_->value(), variance_->value()}; }

  std::string name_;
  Options options_;
  Parameter *gamma_, *beta_, *mean_, *variance_;
  Parameter* batches_;  // null if it is frozen
};

/// Parameters "weight" and "bias"; of each image alone, over groups of channels (Wu & He 2018).
class GroupNorm {
 public:
  GroupNorm(const Scope& s, int64_t width, int64_t groups, double eps = 1e-5);

  /// activation(norm(x) + added). x: [pixels of all images, width]
  Tensor operator()(const Tensor& x, const Segments& images, const NormTail& tail,
                    const Run& run) const;

 private:
  std::string name_;
  int64_t groups_;
  float eps_;
  Parameter *gamma_, *beta_;
};

}  // namespace heddle::nn
