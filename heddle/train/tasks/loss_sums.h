// The losses of a batch, before they are divided.
#pragma once

#include <cstdint>

namespace heddle::train {

/// Sums over tokens (or labels) that are predicted; divide by `predicted` for a mean.
struct LossSums {
  double loss = 0;  ///< with label smoothing, nats
  double nll = 0;   ///< without, nats
  int64_t predicted = 0;
  int64_t tokens = 0;  ///< rows that the model read for it, what speed is counted in
  LossSums& operator+=(const LossSums& o) {
    loss += o.loss;
    nll += o.nll;
    predicted += o.predicted;
    tokens += o.tokens;
    return *this;
  }
};

}  // namespace heddle::train
