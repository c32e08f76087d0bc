// How the time of a layer of each kind grows with the number of positions, on this machine.
#pragma once

#include <optional>
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
/// `kernel` products, the recurrence is h = tanh(W h + x). `seconds` is for all of it, roughly.
std::vector<LayerTimes> layer_times(const inspect::LayerSizes& sizes, double seconds);

/// The number of positions from which layer `i` takes longer than layer `j`, up to the end of what
/// was timed of both: between two lengths by a straight line over logarithms, at most the first
/// where it is longer everywhere. None: it is not longer at the end, or they were not timed.
std::optional<double> crossing(const std::vector<LayerTimes>& curve, size_t i, size_t j);

}  // namespace heddle::bench
