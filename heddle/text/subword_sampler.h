// Other segmentations of the same words, drawn: subword regularisation.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "heddle/base/rng.h"
#include "heddle/text/tokenizer.h"

namespace heddle {

class SubwordModel;

/// Draws segmentations of texts that are ids already. Of a BPE the share `rate` of merges is left
/// out at each step; of a unigram model segmentations are drawn by their probability to the power
/// of `rate`. Copies share it; may be used from several threads at once. Source: Provilkov et al.
/// 2020, "BPE-Dropout"; Kudo 2018, "Subword Regularization".
class SubwordSampler {
 public:
  /// Errors: usage for a tokenizer that is not a plain SentencePiece model, or a rate that is not
  /// above 0 and at most 1.
  SubwordSampler(const Tokenizer& tokenizer, double rate);

  /// Appends the ids of the same text. Special ids, bytes and what is unknown stay as they are.
  void sample(std::span<const int32_t> ids, RngStream& random, std::vector<int32_t>& out) const;

 private:
  std::shared_ptr<const SubwordModel> model_;
  double rate_;
  std::vector<std::string> texts_;  // of each id that is part of a word; "": it stays
};

}  // namespace heddle
