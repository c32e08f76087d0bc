// Roll-out: how much of each token of the input reaches each row, through all layers.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "heddle/inspect/subject.h"

namespace heddle::inspect {

/// Errors: usage, naming the flag, unless it is from 0 to 1.
void check_discard(double share);
/// Makes this share of a layer's weights above 0 zero, the least ones. Source: Gildenblat 2020,
/// "Exploring Explainability for Vision Transformers" (his discard ratio).
template <class T>
void discard_least(std::vector<T>& weights, double share) {
  if (share == 0) return;
  std::vector<size_t> order;
  for (size_t i = 0; i < weights.size(); ++i) {
    if (weights[i] > 0) order.push_back(i);
  }
  const auto count = static_cast<std::ptrdiff_t>(share * static_cast<double>(order.size()));
  std::nth_element(order.begin(), order.begin() + count, order.end(), [&](size_t a, size_t b) {
    return weights[a] != weights[b] ? weights[a] < weights[b] : a < b;
  });
  for (std::ptrdiff_t i = 0; i < count; ++i) weights[order[static_cast<size_t>(i)]] = 0;
}

/// Shares of a kind of attention, by its sides.
struct RolledMap {
  size_t kind = 0;  ///< of the subject's
  int64_t rows = 0, cols = 0;
  std::vector<float> weights;  ///< [rows, cols]
};

/// The weights of a layer's heads are averaged, and half of a row stays where it is, by the
/// residual connection: R = (A / 2 + I / 2) R of the layers before; rows sum to 1. In a decoder
/// with a source half of what comes in through cross attention is what the encoder's roll-out says
/// of it: then a row of "decoder" and the same of "cross" sum to 1 together. A kind whose keys are
/// not its queries in another way (a memory) has none. With `discard` the layers' weights are first
/// those that discard_least() leaves, and what stays where it is gains: each row of A + I is
/// divided by its sum. Takes a pass, memory of all layers' maps, and time that is cubic in the
/// length. Source: Abnar and Zuidema 2020, "Quantifying Attention Flow in Transformers", section 4;
/// the source's part after Ferrando et al. 2022, "Towards Opening the Black Box of Neural Machine
/// Translation", section 3.3, with halves for contributions.
std::vector<RolledMap> attention_rollout(const Subject& subject, double discard = 0);

}  // namespace heddle::inspect
