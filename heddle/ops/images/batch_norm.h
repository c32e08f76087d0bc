// Batch norm over rows of pixels, with what is added behind it and ReLU in the same pass.
#pragma once

#include "heddle/autograd/tape.h"

namespace heddle {

/// Of each column over all rows, f32.
struct ColumnMoments {
  Tensor mean, variance;  ///< [width]; biased variance
};
/// x: [rows, width], f32 or bf16. Sums in chunks of rows that depend on their number only, chunks
/// in order, so for any number of threads the same bits. Errors: shape if there is no row.
ColumnMoments column_moments(const Tensor& x);

struct BatchNormOptions {
  float eps = 1e-5f;
  bool relu = false;
  /// Mean and variance to be taken for those of x; undefined: those of x, through which the
  /// gradient goes then.
  ColumnMoments fixed = {};
  ColumnMoments* found = nullptr;  ///< where those of x are left
};

/// y = gamma * (x - mean) / sqrt(variance + eps) + beta (+ added), of which ReLU leaves what is
/// above 0.
/// x: [rows, width], f32 or bf16; gamma, beta: [width] f32; added: as x, or undefined
/// returns: the shape and dtype of x    Errors: shape if sizes do not fit or there is no row.
/// Source: Ioffe & Szegedy 2015.
Tensor batch_norm(const Tensor& x, const Tensor& gamma, const Tensor& beta, const Tensor& added,
                  const BatchNormOptions& options = {});

}  // namespace heddle
