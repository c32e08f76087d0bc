// The losses of a batch, before they are divided.
#pragma once

#include <cstdint>

namespace heddle::train {

/// Sums over words (or labels) that are predicted; divide by words for a mean.
struct LossSums {
  double loss = 0;  ///< with label smoothing, nats
  double nll = 0;   ///< without, nats
  int64_t words = 0;
  int64_t tokens = 0;  ///< rows that the model read for it, what speed is counted in
  LossSums& operator+=(const LossSums& o) {
    loss += o.loss;
    nll += o.nll;
    words += o.words;
    tokens += o.tokens;
    return *this;
  }
};

}  // namespace heddle::train
