// What a loss may ask of the weights of attention.
#pragma once

#include <cstdint>
#include <vector>

#include "heddle/autograd/tape.h"
#include "heddle/tensor/segments.h"

namespace heddle {

/// The mean over sequences of sum_i (1 - sum_t a_ti)²: what pushes a decoder to look at each value
/// as much.
/// weights: [pairs] f32, row after row the weights of its source's keys    returns: [1] f32
/// Source: Xu et al. 2015, section 4.2.1, eq. (14).
Tensor unevenness(const Tensor& weights, const Segments& segments, const Segments& keys);

/// The mean over rows of -sum_i a_i log a_i, in nats: what pushes a decoder to look at few values.
/// weights: [pairs] f32 as above    rows: how many there are    returns: [1] f32
/// Source: Grandvalet & Bengio 2005, "Semi-supervised learning by entropy minimization", of weights
/// in place of predictions.
Tensor mean_entropy(const Tensor& weights, int64_t rows);

/// Of rows that are to look at some of their keys, which.
struct WantedWeights {
  std::vector<int64_t> places;        ///< among the weights
  std::vector<int64_t> begins = {0};  ///< of each row's places, and behind the last
  int64_t rows() const { return std::ssize(begins) - 1; }
};

/// The sum over rows of -log of the weight inside what is wanted of them.
/// weights: [pairs] f32 as above    returns: [1] f32
/// Source: Chen et al. 2016, "Guided Alignment Training for Topic-Aware Neural Machine
/// Translation", section 3, of the whole weight of a row in place of each key's.
Tensor guided_attention_loss(const Tensor& weights, WantedWeights wanted);

}  // namespace heddle
