// The likeliest next tokens of many rows at once; and the next token of each hypothesis: rules
// first, then the likeliest or a draw.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "heddle/infer/search/search_config.h"
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

/// What is wanted of one row.
struct BestTokensRow {
  int64_t count = 1;                         ///< tokens; 0: none, the row is passed over
  std::span<const int32_t> suppressed = {};  ///< ids that must not come (their share of p stays)
  std::span<const int32_t> banned = {};      ///< further ids that must not come
  int32_t forced = -1;  ///< the only token, whatever is suppressed or banned; -1: any
  bool scores = true;   ///< whether log p is wanted; without, it is 0
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

struct NextTokensOptions {
  /// Its rules: how often a token or an n-gram may come, how early the end; and how a token is
  /// drawn if it samples.
  const SearchConfig* search = nullptr;
  int64_t count = 1;                         ///< tokens wanted of a row; 1 if they are drawn
  std::span<const int32_t> suppressed = {};  ///< SearchConfig::suppressed_ids()
  std::vector<std::vector<int32_t>> banned_ngrams = {};  ///< SearchConfig::banned_ngrams()
  std::span<const int32_t> ends = {};                    ///< SearchConfig::ends()
  bool scores = true;  ///< whether log p is wanted; without, it is 0
  /// Whether the penalty for repeats is one of log p and the rest keeps its share, as in Hugging
  /// Face's beam search, or one of logits, as in its greedy search and sampling.
  bool penalises_log_p = false;
};

/// What the next token of a row follows, and how it is chosen.
struct TokensSoFar {
  const NextTokensOptions* options = nullptr;
  std::span<const int32_t> before = {};  ///< tokens that were given: rules count them too
  std::span<const int32_t> tokens = {};  ///< tokens that were chosen
  int32_t forced = -1;                   ///< the only token that may come; -1: any
  double draw = 0;                       ///< of sampling, see sample_draw()
};

/// The tokens of each row, likeliest first. Where rules leave no token there is the end, or, of a
/// model without one, what the rules forbid. All rows share one pass over the vocabulary; logits of
/// rows with rules or sampling are kept whole. h: [rows, width] states    returns: the tokens of
/// one row behind those of another, `options->count` of each
/// Errors: data if a row has no finite maximum.
std::vector<NextToken> next_tokens(const nn::OutputProjection& output, const Tensor& h,
                                   const nn::Run& run, std::span<const TokensSoFar> rows);

// --- draws ---------------------------------------------------------------------------------------

/// The number in [0, 1) that draws a token: a pure function of seed, line, sample (which of several
/// translations of the line) and position of the token, so it depends on nothing that is computed
/// beside it. 53 bits.
double sample_draw(uint64_t seed, int64_t line, int64_t sample, int64_t position);

/// What may come in a row, see BestTokensRow.
struct SampleRow {
  const SearchConfig* search = nullptr;  ///< temperature and limits; null: the row is passed over
  double draw = 0;                       ///< in [0, 1)
  std::span<const int32_t> suppressed = {};
  std::span<const int32_t> banned = {};
  int32_t forced = -1;
};

/// For each row that is not passed over one token: the first, by id, at which the running sum of
/// the probabilities that are left, in f64, exceeds `draw` of their total. log p is that of the
/// logits as they are, before temperature and limits. id -1 if no token may come. logits: [rows,
/// vocab] f32 Errors: data if a row has no finite maximum. Source: top-p Holtzman et al. 2020,
/// min-p Nguyen et al. 2024.
std::vector<NextToken> sample_tokens(const Tensor& logits, std::span<const SampleRow> rows);

}  // namespace heddle
