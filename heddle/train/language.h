// Forward and backward over a batch of texts: each word predicts the next.
#pragma once

#include "heddle/models/model.h"
#include "heddle/train/loss_sums.h"

namespace heddle::train {

/// For each row the word after it in its sequence; -1, which does not count, after the last.
std::vector<int32_t> next_words(std::span<const int32_t> ids, const Segments& segments);

/// Adds the gradients of the summed loss over the targets to the parameters: targets[i] stands
/// behind row i, a negative one does not count. Without targets they are next_words().
LossSums accumulate_gradients(const LanguageModel& model, const nn::WordRows& words,
                              std::span<const int32_t> targets, const nn::Run& run);
LossSums accumulate_gradients(const LanguageModel& model, const nn::WordRows& words,
                              const nn::Run& run);

/// The loss alone.
LossSums batch_loss(const LanguageModel& model, const nn::WordRows& words,
                    std::span<const int32_t> targets, const nn::Run& run);
LossSums batch_loss(const LanguageModel& model, const nn::WordRows& words, const nn::Run& run);

}  // namespace heddle::train
