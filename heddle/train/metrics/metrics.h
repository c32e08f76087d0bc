// Corpus scores of translations: BLEU (Papineni et al. 2002) and chrF (Popović 2015), each equal to
// sacreBLEU 2.x (Post 2018, "A Call for Clarity in Reporting BLEU Scores").
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace heddle::train {

/// Sentences, one a line of a file. All texts are UTF-8; a byte that is not counts as a character.
using Sentences = std::span<const std::string>;

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
/// hypothesis of four words, scores 0. The same for any number of threads. Errors: data if the
/// counts of lines differ or are 0.
BleuScore corpus_bleu(Sentences hypotheses, Sentences references, const BleuOptions& options = {});

/// As above with several references: references[k] is the k-th translation of every line. A match
/// is clipped by the largest count in any of them. Errors: also data if there is no reference.
BleuScore corpus_bleu(Sentences hypotheses, std::span<const std::vector<std::string>> references,
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
/// Counts are summed over the corpus. The same for any number of threads.
/// Errors: data if the counts of lines differ or are 0.
ChrfScore corpus_chrf(Sentences hypotheses, Sentences references, const ChrfOptions& options = {});

/// As above with several references: each sentence counts with the one that scores it highest.
ChrfScore corpus_chrf(Sentences hypotheses, std::span<const std::vector<std::string>> references,
                      const ChrfOptions& options = {});

}  // namespace heddle::train
