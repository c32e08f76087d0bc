// The likeliest next tokens of many rows at once.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "heddle/nn/embedding.h"

namespace heddle {

/// A token that may come next. id -1: there is none.
struct NextToken {
  int32_t id = -1;
  float log_p = 0;
};

/// Whether it is one of them; of few ids.
inline bool contains(std::span<const int32_t> ids, int32_t id) {
  return std::find(ids.begin(), ids.end(), id) != ids.end();
}

struct BestTokensOptions {
  int64_t count = 1;                         ///< tokens wanted of each row, >= 1
  std::span<const int32_t> suppressed = {};  ///< ids that must not come (their share of p stays)
  /// [rows] or empty: further ids that must not come in this row.
  std::span<const std::vector<int32_t>> banned = {};
  /// [rows] or empty: the only token of this row, whatever is suppressed or banned; -1: any.
  std::span<const int32_t> forced = {};
  bool scores = true;  ///< whether log p is wanted; without, it is 0
};

/// What turns the logits of a row into log p.
struct LogitScale {
  float most = 0;     ///< the largest logit
  float log_sum = 0;  ///< log sum exp(logit - most)
  float log_p(float logit) const { return (logit - most) - log_sum; }
};

/// logits: [rows, vocab] f32. Errors: data if the row has no finite maximum.
LogitScale scale_of_row(const Rows& logits, int64_t row);

/// For each row the `count` likeliest ids, likeliest first, the lower id first among equal ones,
/// with log p = logit - log sum exp(logits). Rows are independent of each other and of the threads.
/// logits: [rows, vocab] f32    returns: [rows * count]
/// Errors: data if a row has no finite maximum (weights that are not finite).
std::vector<NextToken> best_tokens(const Tensor& logits, const BestTokensOptions& options);

/// The same, bit for bit, of output(h): logits are made and looked at part by part, and the matrix
/// [rows, vocab] never exists. h: [rows, width]    returns: [rows * count]
std::vector<NextToken> best_tokens(const nn::OutputProjection& output, const Tensor& h,
                                   const nn::Run& run, const BestTokensOptions& options);

}  // namespace heddle
