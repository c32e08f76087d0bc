// What a translator's attention is to look at: the links that statistics of its pairs draw.
#pragma once

#include <vector>

#include "heddle/ops/recurrent/attention_penalties.h"
#include "heddle/train/alignment/statistical_aligner.h"
#include "heddle/train/batches/corpora.h"

namespace heddle::train {

/// IBM's model 2 of both directions over the words of the training text; what both link counts.
/// Source: Chen et al. 2016, see guided_attention_loss().
class TrainingLinks {
 public:
  /// Learns from corpora.train. Errors: those of StatisticalAligner.
  explicit TrainingLinks(const Corpora& corpora);

  /// Of each row that predicts a token of a linked word: the tokens of the source words that it is
  /// linked with, among the weights of a pass over the batch (Run::source_weights), whatever
  /// subwords it has. A pair whose subwords give other words than its text has none.
  WantedWeights wanted(const TranslationBatch& batch) const;

 private:
  struct PairLinks {
    Alignment links;
    size_t source_words, target_words;
  };
  const Tokenizer &source_, &target_;
  PairMarks marks_;
  std::vector<PairLinks> pairs_;
};

}  // namespace heddle::train
