// The language model's loss: cross entropy of each next token, summed.
#include "heddle/train/tasks/language.h"

#include "heddle/base/profile.h"
#include "heddle/ops/elementwise.h"
#include "heddle/ops/loss.h"

namespace heddle::train {
namespace {

CrossEntropy forward(const LanguageModel& model, const nn::TokenRows& tokens,
                     std::span<const int32_t> targets, const nn::Run& run) {
  const ProfilePhase phase("forward");
  const Tensor h = model.hidden(tokens, run);
  static const std::string kName = "output projection";
  const LayerName layer(kName);
  return model.output().loss(h, targets, {}, run);
}

}  // namespace

std::vector<int32_t> next_targets(std::span<const int32_t> ids, const Segments& segments) {
  std::vector<int32_t> next(ids.size(), -1);
  for (int64_t i = 0; i < segments.count(); ++i) {
    for (int64_t r = segments.begin(i); r + 1 < segments.end(i); ++r) next[r] = ids[r + 1];
  }
  return next;
}

LossSums accumulate_gradients(const LanguageModel& model, const nn::TokenRows& tokens,
                              std::span<const int32_t> targets, const nn::Run& run) {
  std::vector<Tensor> router_logits;  // of a mixture of experts
  nn::Run collecting = run;
  collecting.router_logits = &router_logits;
  const CrossEntropy ce = forward(model, tokens, targets, collecting);
  const auto* mixture = model.as<WithExperts>();
  const Tensor balance = mixture ? mixture->router_loss(router_logits) : Tensor();
  const ProfilePhase phase("backward");  // balance is of the mean, ce.loss a sum
  backward(balance.defined() ? add(ce.loss, scale(balance, static_cast<float>(ce.predicted)))
                             : ce.loss);
  return {ce.total, ce.nll, ce.predicted, static_cast<int64_t>(tokens.ids.size())};
}

LossSums accumulate_gradients(const LanguageModel& model, const nn::TokenRows& tokens,
                              const nn::Run& run) {
  return accumulate_gradients(model, tokens, next_targets(tokens.ids, *tokens.segments), run);
}

LossSums batch_loss(const LanguageModel& model, const nn::TokenRows& tokens,
                    std::span<const int32_t> targets, const nn::Run& run) {
  const NoGrad off;
  const CrossEntropy ce = forward(model, tokens, targets, run);
  return {ce.total, ce.nll, ce.predicted, static_cast<int64_t>(tokens.ids.size())};
}

LossSums batch_loss(const LanguageModel& model, const nn::TokenRows& tokens, const nn::Run& run) {
  return batch_loss(model, tokens, next_targets(tokens.ids, *tokens.segments), run);
}

}  // namespace heddle::train
