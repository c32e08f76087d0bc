// Forward and backward over a batch of texts: each token predicts the next.
#pragma once

#include "heddle/models/token_model.h"
#include "heddle/train/tasks/loss_sums.h"

namespace heddle::train {

/// For each row the token after it in its sequence; -1, which does not count, after the last.
std::vector<int32_t> next_targets(std::span<const int32_t> ids, const Segments& segments);

/// Adds the gradients of the summed loss over the targets to the parameters: targets[i] stands
/// behind row i, a negative one does not count. Without targets they are next_targets().
LossSums accumulate_gradients(const LanguageModel& model, const nn::TokenRows& tokens,
                              std::span<const int32_t> targets, const nn::Run& run);
LossSums accumulate_gradients(const LanguageModel& model, const nn::TokenRows& tokens,
                              const nn::Run& run);

/// The loss alone.
LossSums batch_loss(const LanguageModel& model, const nn::TokenRows& tokens,
                    std::span<const int32_t> targets, const nn::Run& run);
LossSums batch_loss(const LanguageModel& model, const nn::TokenRows& tokens, const nn::Run& run);

}  // namespace heddle::train
