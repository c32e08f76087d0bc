// What one repetition of training or of translating is for any encoder-decoder; inputs are random.
#pragma once

#include <functional>
#include <memory>

#include "heddle/bench/case.h"
#include "heddle/models/model.h"

namespace heddle::bench {

/// A model, and the batches that it is timed with.
struct PairsCase {
  std::string name;  ///< of the case
  std::string model;
  int64_t vocab = 0;
  int64_t sentences = 0;  ///< of a batch
  int64_t length = 0;     ///< of the longest sentence in training, in tokens; the least has 8 fewer
  int64_t beam = 1;
  std::vector<std::string> dtypes;
  std::function<std::unique_ptr<ModelConfig>()> config;
  /// Matrix products of an update over so many rows of each pair.
  std::function<Products(const Segments& source, const Segments& target, const Precision&)>
      of_training = nullptr;
  /// Matrix products of translating these into so many tokens each.
  std::function<Products(const Segments& source, int64_t steps, const Precision&)> of_translation =
      nullptr;
};

/// Forward, backward, clipping at 1, Adam: an update as the trainer makes it.
BenchCase training_case(const PairsCase& c);
/// 8 to 24 tokens and an end, into 20 tokens each.
BenchCase translation_case(const PairsCase& c);

}  // namespace heddle::bench
