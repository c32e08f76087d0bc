// The likeliest next words of many rows at once.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "heddle/tensor/tensor.h"

namespace heddle {

/// A word that may come next. id -1: there is none.
struct NextWord {
  int32_t id = -1;
  float log_p = 0;
};

struct BestWordsOptions {
  int64_t count = 1;                         ///< words wanted of each row, >= 1
  std::span<const int32_t> suppressed = {};  ///< ids that must not come (their share of p stays)
  /// [rows] or empty: where it is true, `forced_id` is the only word.
  std::span<const uint8_t> is_forced = {};
  int32_t forced_id = 0;
};

/// For each row the `count` likeliest ids, likeliest first, the lower id first among equal ones,
/// with log p = logit - log sum exp(logits). Rows are independent of each other and of the threads.
/// logits: [rows, vocab] f32    returns: [rows * count]
/// Errors: data if a row has no finite maximum (weights that are not finite).
std::vector<NextWord> best_words(const Tensor& logits, const BestWordsOptions& options);

}  // namespace heddle
