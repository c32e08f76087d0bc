// Losses of heads for masked words and for classes, and how often they are right.
#pragma once

#include <span>
#include <vector>

#include "heddle/models/model.h"
#include "heddle/train/loss_sums.h"
#include "heddle/train/sequence_batch.h"
#include "heddle/train/validation_score.h"

namespace heddle::train {

/// Cross entropy of the words that are hidden, batch.targets of each row, and of the next-sentence
/// class, where there are any: [sequences], 0 the second part follows, 1 it does not. The second
/// is weighted so that, over the words of the batch, both are means as in Devlin et al. 2019,
/// appendix A.2. Adds gradients to the parameters.
LossSums accumulate_masked(const Model& model, SequenceBatch& batch,
                           std::span<const int32_t> next_sentence, const nn::Run& run);
/// Cross entropy of the class of each sequence (batch.targets: [sequences]) or of each row
/// ([rows]), by the model's head.
LossSums accumulate_classes(const Model& model, SequenceBatch& batch, const nn::Run& run);

/// Right and wrong answers, by class.
class Confusion {
 public:
  explicit Confusion(int64_t classes)
      : classes_(classes), right_(classes), given_(classes), true_(classes) {}
  void add(int32_t truth, int32_t answer);
  /// Share of right answers.
  double accuracy() const;
  /// Mean over the classes that occur or are given of 2 right / (given + true).
  double macro_f1() const;

 private:
  int64_t classes_, all_ = 0, all_right_ = 0;
  std::vector<int64_t> right_, given_, true_;
};

/// What a model answers where targets are not negative.
struct Answers {
  LossSums sums = {};
  std::vector<int32_t> truths = {}, answers = {};
};
Answers answer_masked(const Model& model, SequenceBatch& batch, const nn::Run& run);
Answers answer_classes(const Model& model, SequenceBatch& batch, const nn::Run& run);

}  // namespace heddle::train
