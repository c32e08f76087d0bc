// How the time of a layer of each kind grows with the number of positions, on this machine.
#pragma once

#include <vector>

#include "heddle/inspect/analysis.h"

namespace heddle::bench {

/// Milliseconds of one layer forward, in the order of inspect::layer_costs(); -1: not timed,
/// because a shorter one already took long.
struct LayerTimes {
  int64_t n = 0;
  std::vector<double> milliseconds = {};
};

/// Times the four kinds of layers in f32 on all threads at 64, 128, .. positions up to sizes.n,
/// which comes last: what the table counts and no more (no projections of attention, no
/// feed-forward). Restricted attention is in blocks of `reach` positions, the convolution is
/// `kernel` products, the recurrence h = tanh(W h + x) takes a product a position. `seconds` is for
/// all of it, roughly.
std::vector<LayerTimes> layer_times(const inspect::LayerSizes& sizes, double seconds);

}  // namespace heddle::bench
