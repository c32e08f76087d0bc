// Word alignment without a network: IBM's models 1 and 2, learned from the pairs themselves.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "heddle/infer/words.h"
#include "heddle/train/alignment/word_lines.h"

namespace heddle::train {

struct AlignerOptions {
  int model = 2;       ///< 1: any position of the source as likely; 2: those near the diagonal more
  int iterations = 5;  ///< of expectation maximisation, of each model
  double null = 0.08;  ///< share of target words that come from no word
  double prior = 0.01;  ///< of the Dirichlet prior of translations, by variational Bayes; 0: none
  double tension = 4;   ///< of model 2, to begin with: how much nearer the diagonal is likelier
  std::string label = "align";  ///< of the progress that is shown
};

/// Probabilities of words given words, all of numbers that WordLines gave. The same for any number
/// of threads. Memory: 8 bytes for each two words that some pair has on its sides, and while it
/// learns 8 more for each word of the text.
/// Source: Brown et al. 1993, "The Mathematics of Statistical Machine Translation"; model 2 with
/// the two numbers of Dyer et al. 2013, "A Simple, Fast, and Effective Reparameterization of IBM
/// Model 2", section 2, whose tension is learned too (section 3); the prior: Riley & Gildea 2012.
class StatisticalAligner {
 public:
  /// Learns from pairs: line i of one is a translation of line i of the other. Pairs with more than
  /// 1,000 words on a side are passed over.
  /// Errors: usage for a model but 1 and 2, iterations below 1, or shares outside [0, 1); data for
  /// sides of different numbers of lines.
  StatisticalAligner(const WordLines& sources, const WordLines& targets,
                     const AlignerOptions& options);

  /// For each target word the likeliest source word, the first among equals, or none, unless
  /// `links_all`.
  Alignment align(std::span<const int32_t> source, std::span<const int32_t> target,
                  bool links_all = false) const;

  /// p(target | source); 1e-9 of words never seen together.
  double translation(int32_t source, int32_t target) const;
  double tension() const { return tension_; }

 private:
  class Learning;
  // The targets seen with each source word, in order, and how likely each of them is.
  struct Table {
    std::vector<size_t> begins;  // of a source word's; 0 is none
    std::vector<int32_t> targets;
    std::vector<float> likely;  // times kScale
    // Of the target in the row of the source, which it is seen with; else the row's end.
    size_t place_of(int32_t source, int32_t target) const;
  };
  double set_shares(size_t target, size_t targets, size_t sources, bool by_position,
                    std::vector<double>& shares) const;

  AlignerOptions options_;
  Table table_;
  double tension_;
};

/// Links of both directions as one set: "intersection", "union" or "grow-diag-final-and" (Koehn et
/// al. 2003, 2005: from the intersection to neighbours in the union whose words lack links, then
/// links of words that both lack one). Errors: usage for another name.
Alignment symmetrize(const Alignment& forward, const Alignment& backward, const std::string& how);

/// Of the first `count` pairs, learned from all, one direction after the other: their links
/// symmetrised, or those of target words alone where `how` is "none". The label tells them apart.
/// Errors: those of StatisticalAligner and symmetrize().
std::vector<Alignment> align_lines(const WordLines& sources, const WordLines& targets,
                                   int64_t count, const std::string& how, AlignerOptions options);

}  // namespace heddle::train
