// The next token of each hypothesis: rules first, then the likeliest or a draw.
#pragma once

#include <vector>

#include "heddle/infer/search/best_tokens.h"
#include "heddle/infer/search/search_config.h"

namespace heddle {

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
