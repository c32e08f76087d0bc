// Pages of heddle eval: what a model predicts well and what it gets wrong.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "heddle/infer/perplexity.h"
#include "heddle/inspect/pages/page.h"
#include "heddle/text/tokenizer.h"

namespace heddle::inspect {

/// What a page holds; it says how much was left out.
inline constexpr int64_t kPagePredictions = 20000, kPageAnswers = 2000;

/// What all of them say.
struct Evaluation {
  std::string model, file;  ///< as they were given
  std::string summary;      ///< lines, as the command prints them
};

/// Each of the first tokens of a text with its loss.
/// ids: the whole text    tokens: of ids[1] and those behind, kPagePredictions at most
/// vocab: tokens that the model chooses among
Page prediction_page(const Evaluation& evaluation, const Tokenizer& tokenizer,
                     std::span<const int32_t> ids, std::span<const PredictedToken> tokens,
                     int64_t vocab);

/// A part of a text between what stands around it; laid end to end they are the text.
struct PartOfText {
  std::string before, part, after;
};
/// Ids [begin, end) of a text, with a few before and behind.
PartOfText part_of_text(const Tokenizer& tokenizer, std::span<const int32_t> ids, size_t begin,
                        size_t end);

/// What a model was asked about, and what it said.
struct AnsweredQuestion {
  PartOfText text;  ///< a whole text has nothing around it
  int32_t truth = 0, answer = 0;
  double truth_p = 0, answer_p = 0;  ///< probabilities that the model gave
};

/// Masked tokens, the first kPageAnswers of `questions`, and what the model put there. `count`: all
/// that were asked.
Page masked_page(const Evaluation& evaluation, const Tokenizer& tokenizer,
                 std::span<const AnsweredQuestion> questions, int64_t count);

/// What the model took classes for: all answers as a matrix, and the first kPageAnswers of the
/// wrong ones. `unit`: "text" or "token"
Page confusion_page(const Evaluation& evaluation, const std::vector<std::string>& labels,
                    const std::string& unit, std::span<const int32_t> truths,
                    std::span<const int32_t> answers, std::span<const AnsweredQuestion> wrong);

struct JudgedTranslation {
  std::string source, reference, translation;
  double chrf = 0;  ///< of this line alone, 0 to 100
};
/// The first kPageAnswers lines of `lines`; `count`: all that there are.
Page translations_page(const Evaluation& evaluation, std::span<const JudgedTranslation> lines,
                       int64_t count);

}  // namespace heddle::inspect
