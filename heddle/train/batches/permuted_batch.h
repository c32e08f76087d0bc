// Sequences whose tokens become known in an order of their own, and the loss of those predicted.
#pragma once

#include <vector>

#include "heddle/data/masking.h"
#include "heddle/models/model.h"
#include "heddle/train/batches/sequence_batch.h"
#include "heddle/train/tasks/loss_sums.h"

namespace heddle::train {

/// `targets` holds the predicted tokens, one a prediction of `order`.
struct PermutedBatch : SequenceBatch {
  /// Lays a sequence behind the others, with its types (none: all 0) and its order.
  void add(std::span<const int32_t> sequence, std::span<const int32_t> its_types, int64_t sample,
           const Permutation& permutation);
  /// As models take them; they point into this batch.
  nn::TokenRows tokens();

  nn::TokenOrder order;

 private:
  std::vector<int64_t> predictions_;  // of each sequence
};

/// Adds the gradients of the summed loss over the predictions to the parameters.
LossSums accumulate_permuted(const Model& model, PermutedBatch& batch, const nn::Run& run);

/// The loss alone, and what the model predicts: the likeliest token of each prediction.
struct PermutedAnswers {
  LossSums sums = {};
  std::vector<int32_t> tokens = {};
};
PermutedAnswers answer_permuted(const Model& model, PermutedBatch& batch, const nn::Run& run);

}  // namespace heddle::train
