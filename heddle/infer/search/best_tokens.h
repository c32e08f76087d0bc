// The likeliest next tokens of many rows at once.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "heddle/infer/search/token_constraint.h"
#include "heddle/nn/embedding.h"

namespace heddle {

/// A token that may come next. id -1: there is none.
struct NextToken {
  int32_t id = -1;
  float log_p = 0;
  bool is_own = true;  ///< not of a token that was forced where another one would have come
};

/// Whether it is one of them; of few ids.
inline bool contains(std::span<const int32_t> ids, int32_t id) {
  return std::find(ids.begin(), ids.end(), id) != ids.end();
}

/// What is wanted of one row.
struct BestTokensRow {
  int64_t count = 1;                         ///< tokens; 0: none, the row is passed over
  std::span<const int32_t> suppressed = {};  ///< ids that must not come (their share of p stays)
  std::span<const int32_t> banned = {};      ///< further ids that must not come
  /// The only token, whatever is suppressed or banned; its own if it is the likeliest of those that
  /// may come; -1: any
  int32_t forced = -1;
  bool scores = true;  ///< whether log p is wanted; without, it is 0
  int64_t width = -1;  ///< so many columns are the row, those behind it are nothing; -1: all
  const TokenSet* allowed = nullptr;  ///< the only ids that may come; null: any
  /// Whether log p is that among the ids that may come, unless one is forced. Of logits that are
  /// given the caller calls drop().
  bool renormalizes = false;
};

/// Makes -inf of the logits that must not come. logits: of the ids from `first` on
void drop(const BestTokensRow& row, std::span<float> logits, int64_t first);

/// What turns the logits of a row into log p.
struct LogitScale {
  float most = 0;     ///< the largest logit
  float log_sum = 0;  ///< log sum exp(logit - most)
  float log_p(float logit) const { return (logit - most) - log_sum; }
};

/// logits: [rows, vocab] f32. Errors: data if the row has no finite maximum.
LogitScale scale_of_row(const Rows& logits, int64_t row);

/// For each row the `count` likeliest ids, likeliest first, the lower id first among equal ones,
/// with log p = logit - log sum exp(logits); of all rows the same is wanted as of `each`. Rows are
/// independent of each other and of the threads. logits: [rows, vocab] f32; forced: [rows] or
/// empty: the only token of this row, or -1    returns: the tokens of one row behind those of
/// another, `count` of each. Errors: data if a row has no finite maximum (weights that are not
/// finite).
std::vector<NextToken> best_tokens(const Tensor& logits, const BestTokensRow& each,
                                   std::span<const int32_t> forced = {});

/// The same, bit for bit, of output(h): logits are made and looked at part by part, and the matrix
/// [rows, vocab] never exists. h: [rows, width]
std::vector<NextToken> best_tokens(const nn::OutputProjection& output, const Tensor& h,
                                   const nn::Run& run, const BestTokensRow& each,
                                   std::span<const int32_t> forced = {});

/// Rows whose logits are wanted too.
struct KeptLogits {
  std::span<const int64_t> rows;  ///< [kept] their numbers
  Tensor logits = {};             ///< [kept, vocab] f32, written
};

/// best_tokens() with wants of each row's own; kept: may be null.
std::vector<NextToken> best_tokens_of_rows(const Tensor& logits,
                                           std::span<const BestTokensRow> rows);
std::vector<NextToken> best_tokens_of_rows(const nn::OutputProjection& output, const Tensor& h,
                                           const nn::Run& run, std::span<const BestTokensRow> rows,
                                           KeptLogits* kept = nullptr);

}  // namespace heddle
