// Drawing the next token at random instead of taking the likeliest.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "heddle/infer/search/best_tokens.h"
#include "heddle/infer/search/search_config.h"

namespace heddle {

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
