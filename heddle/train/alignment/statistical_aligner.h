// Word alignment without a network: IBM's models 1 and 2, learned from the pairs themselves.
#pragma once

#include <map>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "heddle/infer/words.h"

namespace heddle::train {

struct AlignerOptions {
  int model = 2;       ///< 1: any position of the source as likely; 2: those near the diagonal more
  int iterations = 5;  ///< of expectation maximisation, of each model
  double null = 0.08;  ///< share of target words that come from no word
  double prior = 0.01;  ///< of the Dirichlet prior of translations, by variational Bayes; 0: none
  double tension = 4;   ///< of model 2, to begin with: how much nearer the diagonal is likelier
};

/// The words of a line, as spaces part them.
using LineWords = std::vector<std::string>;

/// Probabilities of words given words. Words are compared in lower case, without punctuation at
/// their ends. The same for any number of threads.
/// Source: Brown et al. 1993, "The Mathematics of Statistical Machine Translation"; model 2 with
/// the two numbers of Dyer et al. 2013, "A Simple, Fast, and Effective Reparameterization of IBM
/// Model 2", section 2, whose tension is learned too (section 3); the prior: Riley & Gildea 2012.
class StatisticalAligner {
 public:
  /// Learns from pairs: line i of one is a translation of line i of the other. Pairs with more than
  /// 1,000 words on a side are passed over. Words are UTF-8.
  /// Errors: usage for a model but 1 and 2, iterations below 1, or shares outside [0, 1).
  StatisticalAligner(std::span<const LineWords> sources, std::span<const LineWords> targets,
                     const AlignerOptions& options);

  /// For each target word the likeliest source word, the first among equals, or none.
  Alignment align(const LineWords& source, const LineWords& target) const;

  /// p(target | source); 1e-9 of words never seen together.
  double translation(const std::string& source, const std::string& target) const;
  double tension() const { return tension_; }

 private:
  using Ids = std::vector<int32_t>;
  struct Sums;
  // The targets seen with a source word, in order, and what is known of each.
  struct Row {
    std::vector<int32_t> targets = {};
    std::vector<double> probabilities = {}, counts = {};
    int64_t place_of(int32_t target) const;
  };
  using Vocabulary = std::unordered_map<std::string, int32_t>;

  Ids ids_of(const LineWords& words, const Vocabulary& vocabulary) const;
  void learn_words(std::span<const LineWords> lines, Vocabulary& vocabulary, std::vector<Ids>& ids);
  void find_pairs();
  void expect(bool by_position, Sums& sums);
  void maximise();
  void learn_tension(const Sums& sums);
  void set_shares(size_t target, size_t targets, size_t sources, bool by_position,
                  std::vector<double>& shares) const;
  double probability(int32_t source, int32_t target) const;

  AlignerOptions options_;
  Vocabulary source_words_, target_words_;
  std::vector<Ids> sources_, targets_;                    // only while it learns
  std::map<std::pair<size_t, size_t>, int64_t> lengths_;  // pairs of so many words each
  std::vector<Row> rows_;                                 // of source words; 0 is none
  double tension_;
};

/// Links of both directions as one set: "intersection", "union" or "grow-diag-final-and" (Koehn et
/// al. 2003, 2005: from the intersection to neighbours in the union whose words lack links, then
/// links of words that both lack one). Errors: usage for another name.
Alignment symmetrize(const Alignment& forward, const Alignment& backward, const std::string& how);

}  // namespace heddle::train
