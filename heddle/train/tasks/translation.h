// The loss of translation: forward and backward over one batch.
#pragma once

#include "heddle/data/batches.h"
#include "heddle/models/encoder_decoder.h"
#include "heddle/train/tasks/loss_sums.h"

namespace heddle::train {

/// Forward and backward: adds d(sum of losses) / d(weights) to the gradients of the parameters.
/// With `divergence` the batch holds two passes (make_translation_batch); sums are those of one,
/// the mean of both.
LossSums accumulate_gradients(const EncoderDecoder& model, const TranslationBatch& batch,
                              const nn::Run& run, double label_smoothing, double divergence = 0);

/// The loss alone.
LossSums batch_loss(const EncoderDecoder& model, const TranslationBatch& batch, const nn::Run& run);

}  // namespace heddle::train
