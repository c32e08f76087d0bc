// Alignment error rate against links that people drew.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "heddle/infer/words/alignment.h"

namespace heddle::train {

/// Links of one pair. Sure links are possible too.
struct GoldAlignment {
  Alignment sure, possible;  ///< in order, each once
};

/// Reads "0-0 1-2 3p4": SOURCE-TARGET is sure, SOURCEpTARGET only possible. `base` is the number of
/// the first word, 0 or 1; `reversed`: the target's word comes first.
/// Errors: data, beginning with `where`, for anything else.
GoldAlignment parse_gold(std::string_view line, int base, bool reversed, const std::string& where);

/// Counts over all pairs. A: links found, S: sure, P: possible.
struct AlignmentScore {
  int64_t found = 0, sure = 0;                 ///< |A|, |S|
  int64_t found_sure = 0, found_possible = 0;  ///< |A and S|, |A and P|
  int64_t out_of_range = 0;                    ///< gold links to words that are not there

  double precision() const;   ///< |A and P| / |A|
  double recall() const;      ///< |A and S| / |S|
  double error_rate() const;  ///< 1 - (|A and S| + |A and P|) / (|A| + |S|)
};

/// Adds one pair; gold links beyond its words are left out and counted.
/// Source: Och & Ney 2003, "A Systematic Comparison of Various Statistical Alignment Models".
void add_pair(AlignmentScore& score, const Alignment& found, const GoldAlignment& gold,
              size_t source_words, size_t target_words);

}  // namespace heddle::train
