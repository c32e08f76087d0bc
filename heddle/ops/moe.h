// The router of a mixture of experts and its loss.
#pragma once

#include <vector>

#include "heddle/autograd/tape.h"

namespace heddle {

/// Which experts compute each row.
struct Routes {
  std::vector<int32_t> experts;  ///< [rows * k] of each row, likeliest first; ties: lower index
  Tensor weights;                ///< [rows, k] f32: softmax over all experts, divided by its sum
};
/// logits: [rows, experts]    Errors: shape unless 1 <= k <= experts.
/// Source: Shazeer et al. 2017, "Outrageously Large Neural Networks", section 2.1, without noise;
/// weights that sum to one as in Jiang et al. 2024, "Mixtral of Experts".
Routes route(const Tensor& logits, int64_t k);

/// y[r] = x[r] * factors[r]. x: [rows, width], factors: [rows] or [rows, 1] f32
/// returns: the shape and dtype of x
Tensor scale_rows(const Tensor& x, const Tensor& factors);

/// experts * sum_e f_e p_e over the rows of all `logits` [rows, experts] together, where f_e is the
/// number of rows that choose expert e among their k, divided by the rows, and p_e its mean
/// softmax; k if experts are chosen evenly. Gradients go through p.
/// returns: [1] f32    Errors: those of route(). Source: Fedus et al. 2021, "Switch Transformers",
/// eq. (4) to (6).
Tensor balance_loss(const std::vector<Tensor>& logits, int64_t k);

}  // namespace heddle
