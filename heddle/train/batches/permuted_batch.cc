// Two streams: the tokens, and in their places those that are predicted unseen.
#include "heddle/train/batches/permuted_batch.h"

#include "heddle/base/profile.h"
#include "heddle/infer/search/best_tokens.h"

namespace heddle::train {
namespace {

LossSums sums_of(const CrossEntropy& ce, const PermutedBatch& batch) {
  return {ce.total, ce.nll, ce.predicted, static_cast<int64_t>(batch.ids.size())};
}

CrossEntropy loss_of(const Model& model, const Tensor& h, const PermutedBatch& batch,
                     const nn::Run& run) {
  static const std::string kName = "output projection";
  const LayerName layer(kName);
  return model.heads().output->loss(h, batch.targets, {}, run);
}

}  // namespace

void PermutedBatch::add(std::span<const int32_t> sequence, std::span<const int32_t> its_types,
                        int64_t sample, const Permutation& permutation) {
  const auto first = static_cast<int32_t>(ids.size());
  SequenceBatch::add(sequence, sample, {}, its_types);
  order.steps.insert(order.steps.end(), permutation.steps.begin(), permutation.steps.end());
  for (const int32_t token : permutation.targets) {
    order.target_tokens.push_back(first + token);
    targets.push_back(sequence[static_cast<size_t>(token)]);
  }
  predictions_.push_back(static_cast<int64_t>(permutation.targets.size()));
}

nn::TokenRows PermutedBatch::tokens() {
  order.targets = Segments::from_lengths(predictions_);
  nn::TokenRows tokens = SequenceBatch::tokens();
  tokens.order = &order;
  return tokens;
}

LossSums accumulate_permuted(const Model& model, PermutedBatch& batch, const nn::Run& run) {
  LossSums sums;
  Tensor loss;
  {
    const ProfilePhase phase("forward");
    const CrossEntropy ce = loss_of(model, model.hidden(batch.tokens(), run), batch, run);
    sums = sums_of(ce, batch);
    loss = ce.loss;
  }
  const ProfilePhase phase("backward");
  backward(loss);
  return sums;
}

PermutedAnswers answer_permuted(const Model& model, PermutedBatch& batch, const nn::Run& run) {
  const NoGrad off;
  const Tensor h = model.hidden(batch.tokens(), run);
  PermutedAnswers answers{.sums = sums_of(loss_of(model, h, batch, run), batch)};
  for (const NextToken& token : best_tokens(*model.heads().output, h, run, {.scores = false})) {
    answers.tokens.push_back(token.id);
  }
  return answers;
}

}  // namespace heddle::train
