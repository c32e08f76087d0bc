// A shortlist of tokens from pairs, by statistical alignment.
#pragma once

#include "heddle/infer/search/shortlist.h"
#include "heddle/train/alignment/statistical_aligner.h"

namespace heddle::train {

struct PairsShortlistOptions {
  int64_t each = 20;           ///< target tokens of a source token, those that came most often
  int64_t frequent = 1000;     ///< of the targets, which are always there
  bool shares_tokens = false;  ///< a source token may be copied
  AlignerOptions aligner = {.label = "shortlist"};
};

/// Aligns pairs of WordLines::add_tokens(): a target token is a candidate of the source token that
/// it most likely comes from, wherever that is. source_tokens, target_tokens: of the vocabularies
/// Errors: those of StatisticalAligner; usage for numbers below 1.
ShortlistTokens pairs_shortlist(const WordLines& sources, const WordLines& targets,
                                int64_t source_tokens, int64_t target_tokens,
                                const PairsShortlistOptions& options);

/// What a shortlist does to pairs.
struct ShortlistCounts {
  int64_t pairs = 0, target_tokens = 0;
  int64_t found = 0;       ///< target tokens that are among the candidates of their source
  int64_t candidates = 0;  ///< of all sources
  void add(const Shortlist& shortlist, std::span<const int32_t> source,
           std::span<const int32_t> target);
};

}  // namespace heddle::train
