// Muon: momentum whose steps are made orthogonal, for matrices between hidden states. Source:
// Jordan et al. 2024, "Muon: An optimizer for hidden layers in neural networks"; scale and decay as
// in Liu et al. 2025, "Muon is scalable for LLM training".
#pragma once

#include <span>

#include "heddle/nn/parameters.h"

namespace heddle::train {

/// The matrix of the same singular vectors whose singular values all lie near 1 (0.7 to 1.2), by
/// five steps of Newton and Schulz with products in bf16.
/// x: [m, n] f32    returns: [m, n] f32; zeros of zeros
Tensor orthogonal(const Tensor& x);

/// One parameter's part in an update.
struct MuonArgs {
  nn::Parameter* p = nullptr;
  float* gradient = nullptr;  ///< of the whole parameter
  Tensor velocity = {};       ///< as Moments::m
  Tensor ema = {};            ///< as Moments::ema
  double learning_rate = 0;
};
struct MuonOptions {
  double momentum = 0.95;
  bool nesterov = true;
  double weight_decay = 0;
  double grad_scale = 1, ema_decay = 0;
};
/// v = momentum v + g; w -= lr (0.2 sqrt(max(m, n)) orthogonal(g + momentum v, or v) + decay w),
/// for each tensor that the checkpoint has of the parameter, as it lies in memory: [m, n]. The
/// factor gives steps the size of Adam's, so that both take the same rate. Matrices side by side on
/// all threads.
void muon_step(std::span<const MuonArgs> all, const MuonOptions& options);

}  // namespace heddle::train
