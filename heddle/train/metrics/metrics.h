// Corpus scores of translations: BLEU (Papineni et al. 2002) and chrF (Popović 2015), each equal to
// sacreBLEU 2.x (Post 2018, "A Call for Clarity in Reporting BLEU Scores"); and of alignments, the
// error rate against links that people drew.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "heddle/infer/words.h"

namespace heddle::train {

/// Sentences, one a line of a file. All texts are UTF-8; a byte that is not counts as a character.
using Sentences = std::span<const std::string>;

/// Translations that a corpus is scored against: [k] is the k-th one of every line.
struct References : std::vector<Sentences> {
  References(Sentences one) : std::vector<Sentences>{one} {}
  References(const std::vector<std::string>& one) : References(Sentences(one)) {}
  References(const std::vector<std::vector<std::string>>& several)
      : std::vector<Sentences>(several.begin(), several.end()) {}
};

enum class BleuTokenizer {
  mteval_13a,  ///< "13a": the tokenizer of NIST's mteval-v13a.pl, sacreBLEU's default
  none         ///< "none": the words are what white space separates
};

/// "13a" or "none". Errors: usage for any other name.
BleuTokenizer bleu_tokenizer(const std::string& name);

struct BleuOptions {
  bool lowercase = false;  ///< lower-case both sides first, as Python's str.lower() does
  BleuTokenizer tokenizer = BleuTokenizer::mteval_13a;
};

struct BleuScore {
  double score = 0;               ///< 0 to 100
  double precisions[4] = {};      ///< of n-grams of 1 to 4 words, smoothed, 0 to 100
  double brevity_penalty = 0;     ///< 0 to 1
  int64_t hypothesis_length = 0;  ///< words after tokenisation
  int64_t reference_length = 0;   ///< words; of several references the closest in length
  std::string signature;          ///< "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|..."
  bool operator==(const BleuScore&) const = default;
};

/// BLEU = BP * exp(1/4 * sum_n log p_n), p_n the clipped n-gram precisions of the whole corpus,
/// BP = exp(1 - r/h) where the hypotheses are shorter. Exponential smoothing: the k-th order
/// without a match counts as 1 / (2^k * n-grams). A corpus without any match, or without one
/// hypothesis of four words, scores 0. With several references a match is clipped by the largest
/// count in any of them. The same for any number of threads. Errors: data if the counts of lines
/// differ or are 0, or there is no reference.
BleuScore corpus_bleu(Sentences hypotheses, const References& references,
                      const BleuOptions& options = {});

struct ChrfOptions {
  bool lowercase = false;  ///< lower-case both sides first, as Python's str.lower() does
};

struct ChrfScore {
  double score = 0;       ///< 0 to 100
  std::string signature;  ///< "nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no|..."
  bool operator==(const ChrfScore&) const = default;
};

/// chrF2: F-score with beta 2 (recall counts twice) of the precision and recall of character
/// n-grams, white space removed, each averaged over the orders 1 to 6 that both sides have.
/// Counts are summed over the corpus; of several references each sentence counts with the one that
/// scores it highest. The same for any number of threads. Errors: as above.
ChrfScore corpus_chrf(Sentences hypotheses, const References& references,
                      const ChrfOptions& options = {});

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
