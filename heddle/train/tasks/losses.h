// Losses of batches, with their gradients or alone, and how often the answers are right.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "heddle/data/batches.h"
#include "heddle/dist/group.h"
#include "heddle/models/encoder_decoder.h"
#include "heddle/ops/recurrent/attention_penalties.h"
#include "heddle/train/batches/sequences.h"
#include "heddle/train/scores.h"

namespace heddle::train {

// accumulate_*() add the gradients of the summed loss to the parameters, batch_loss() computes the
// loss alone.

/// For each row the token after it in its sequence; -1, which does not count, after the last.
std::vector<int32_t> next_targets(std::span<const int32_t> ids, const Segments& segments);

/// Of a language model, over the targets: targets[i] stands behind row i, a negative one does not
/// count. Without targets they are next_targets().
LossSums accumulate_gradients(const LanguageModel& model, const nn::TokenRows& tokens,
                              const nn::Run& run, std::span<const int32_t> targets = {});
LossSums batch_loss(const LanguageModel& model, const nn::TokenRows& tokens, const nn::Run& run,
                    std::span<const int32_t> targets = {});

/// Where attention to the source is to go: the mean of the heads of aligning_layer().
struct AttentionGuide {
  WantedWeights wanted = {};
  double weight = 0;  ///< times guided_attention_loss(), beside the loss of a token; 0: none
};

/// Of a translator. With `divergence` the batch holds two passes (make_translation_batch); sums are
/// those of one, the mean of both, without the guide's.
LossSums accumulate_gradients(const EncoderDecoder& model, const TranslationBatch& batch,
                              const nn::Run& run, double label_smoothing, double divergence = 0,
                              const AttentionGuide& guide = {});
LossSums batch_loss(const EncoderDecoder& model, const TranslationBatch& batch, const nn::Run& run);
/// (1 - weight) times that loss, of one pass, and weight times the cross entropy against `taught`,
/// what a teacher expects in the place of each token: [t, vocab] f32, each row a distribution,
/// which becomes what is to be predicted. The logits of all rows exist at once.
LossSums accumulate_taught(const EncoderDecoder& model, const TranslationBatch& batch,
                           const nn::Run& run, double label_smoothing, const Tensor& taught,
                           double weight, const AttentionGuide& guide = {});
/// The states that its tokens are predicted from: [t, width].
Tensor decoder_states(const EncoderDecoder& model, const TranslationBatch& batch,
                      const nn::Run& run);

/// Cross entropy of the tokens that are hidden, batch.targets of each row, and of the next-sentence
/// class, where there are any: [sequences], 0 the second part follows, 1 it does not. The second
/// is weighted so that, over the tokens of the batch, both are means as in Devlin et al. 2019,
/// appendix A.2.
LossSums accumulate_masked(const Model& model, SequenceBatch& batch,
                           std::span<const int32_t> next_sentence, const nn::Run& run);
/// Cross entropy of the class of each sequence (targets: [sequences]) or of each row ([rows]), by
/// the model's head, whatever it reads. Errors: data if it has none of classes.
LossSums accumulate_classes(const Model& model, const ModelInput& input,
                            std::span<const int32_t> targets, const nn::Run& run);
/// The logits of those classes.
Tensor class_logits(const Model& model, const ModelInput& input, const nn::Run& run);
/// Over the predictions.
LossSums accumulate_permuted(const Model& model, SequenceBatch& batch, const nn::Run& run);

/// The sum of the losses of passes 0 .. passes - 1, in this order: ranks share the passes, all of
/// them call it. Errors: see dist::share_out().
LossSums shared_loss(dist::Group& group, int64_t passes,
                     const std::function<LossSums(int64_t pass)>& loss_of_pass);

/// How many classes go before one: the likelier ones, and of equal ones those of lower number.
template <class T>
int64_t rank_of(int32_t truth, std::span<const T> scores) {
  int64_t rank = 0;
  for (int32_t c = 0; c < std::ssize(scores); ++c) {
    rank += scores[c] > scores[truth] || (scores[c] == scores[truth] && c < truth);
  }
  return rank;
}

/// Right and wrong answers, by class.
class Confusion {
 public:
  explicit Confusion(int64_t classes) : right_(classes), given_(classes), true_(classes) {}
  void add(int32_t truth, int32_t answer);
  /// Share of right answers.
  double accuracy() const;
  /// Mean over the classes that occur or are given of 2 right / (given + true).
  double macro_f1() const;

 private:
  std::vector<int64_t> right_, given_, true_;
};

/// What a model answers where targets are not negative.
struct Answers {
  LossSums sums = {};
  std::vector<int32_t> truths = {}, answers = {};
  std::vector<float> truth_log_p = {}, answer_log_p = {};  ///< if they are wanted

  template <class V>
  void parts(V& v) {
    v(sums, truths, answers, truth_log_p, answer_log_p);
  }
};
Answers answer_masked(const Model& model, SequenceBatch& batch, const nn::Run& run,
                      bool wants_log_p = false);
Answers answer_classes(const Model& model, SequenceBatch& batch, const nn::Run& run,
                       bool wants_log_p = false);
/// Of the predictions of an order.
Answers answer_permuted(const Model& model, SequenceBatch& batch, const nn::Run& run,
                        bool wants_log_p = false);

/// Many samples to ask a model about.
struct Questions {
  int64_t classes = 0;  ///< that an answer may be
  int64_t samples = 0;
  /// Lays a sample behind the others of a batch.
  std::function<void(SequenceBatch& batch, int64_t sample)> add = {};
  int64_t at_once = 64;  ///< samples of a pass
  bool keeps = false;    ///< AnswerScore::all, with log p
};

struct AnswerScore {
  LossSums sums;
  Confusion confusion;
  Answers all = {};  ///< sample after sample, if they are kept
  /// Of an answer, nats.
  double loss() const { return sums.nll / static_cast<double>(sums.predicted); }
};

/// Asks all of them; `answer`: one of the functions above. The ranks share the passes, all call it,
/// and all know the score.
AnswerScore score_answers(const Model& model, decltype(answer_masked) answer,
                          const Questions& questions, const nn::Run& run, dist::Group& group);

}  // namespace heddle::train
