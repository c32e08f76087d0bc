// The loss of translation: forward and backward over one batch.
#pragma once

#include "heddle/data/translation_batch.h"
#include "heddle/models/transformer.h"

namespace heddle::train {

/// Sums over target words; divide by words for a mean.
struct LossSums {
  double loss = 0;  ///< with label smoothing, nats
  double nll = 0;   ///< without, nats
  int64_t words = 0;
  LossSums& operator+=(const LossSums& o) {
    loss += o.loss;
    nll += o.nll;
    words += o.words;
    return *this;
  }
};

/// Forward and backward: adds d(sum of losses) / d(weights) to the gradients of the parameters.
/// With `divergence` the batch holds two passes (make_translation_batch); sums are those of one,
/// the mean of both.
LossSums accumulate_gradients(const Transformer& model, const TranslationBatch& batch,
                              const nn::Run& run, double label_smoothing, double divergence = 0);

/// The loss alone.
LossSums batch_loss(const Transformer& model, const TranslationBatch& batch, const nn::Run& run);

}  // namespace heddle::train
