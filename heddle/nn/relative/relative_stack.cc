// Sublayers of each stream, layer after layer, kept or computed again.
#include "heddle/nn/relative/relative_stack.h"

namespace heddle::nn {
namespace {

void show(const std::vector<Tensor>& x, size_t layer, const RelativePass& pass, const Run& run) {
  if (run.observer == nullptr || !run.observer->hidden) return;
  for (size_t i = 0; i < x.size(); ++i) {
    run.observer->hidden(
        fmt::format("{}hidden_states.{}", pass.streams[i].prefix, layer * x.size() + i), x[i]);
  }
}

}  // namespace

std::vector<Tensor> RelativeLayer::operator()(std::span<const Tensor> x, const Tensor& before,
                                              const RelativePass& pass, const Run& run) const {
  std::vector<Residual> streams;
  std::vector<Tensor> entered;
  for (const Tensor& states : x) {
    streams.emplace_back(states, is_pre);
    entered.push_back(streams.back().enter(attention_norm));
  }
  const bool is_normed = is_pre && before.size(0) > 0;
  const std::vector<Tensor> attended =
      attention(entered, is_normed ? attention_norm(before) : before, pass, run);
  std::vector<Tensor> y;
  for (size_t i = 0; i < x.size(); ++i) {
    const auto& [rows, ids, prefix] = pass.streams[i];
    Residual& h = streams[i];
    h.leave(attended[i], run.dropout(dropout, prefix + site + ".attn", ids), attention_norm);
    const Tensor sub = ff(h.enter(ff_norm), ids, run);
    h.leave(sub, run.dropout(dropout, prefix + site + ".ff", ids), ff_norm);
    y.push_back(h.value());
  }
  return y;
}

std::vector<Tensor> run_relative_stack(const std::vector<RelativeLayer>& layers,
                                       std::vector<Tensor> x,
                                       const std::shared_ptr<const RelativePass>& pass,
                                       const Run& run, std::vector<Tensor>* entered) {
  for (size_t i = 0; i < layers.size(); ++i) {
    show(x, i, *pass, run);
    if (entered != nullptr) entered->push_back(x[0]);
    const Recomputed layer = [&layer = layers[i], i, pass, run](std::span<const Tensor> in) {
      return layer(in, pass->memory.layers[i], *pass, run);
    };
    x = run.recompute && is_recording() ? recompute(x, layer) : layer(x);
  }
  show(x, layers.size(), *pass, run);
  return x;
}

}  // namespace heddle::nn
