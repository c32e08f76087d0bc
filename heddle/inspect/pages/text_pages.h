// Pages of the commands that take texts: tokens for masks, classes, cosine similarity of vectors;
// and of heddle eval: what a model predicts well and what it gets wrong.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "heddle/infer/answers.h"
#include "heddle/infer/perplexity.h"
#include "heddle/inspect/pages/page.h"
#include "heddle/text/tokenizer.h"
#include "heddle/vision/image.h"

namespace heddle::inspect {

/// What a page holds of many texts and long ones; it says how many were left out.
inline constexpr int64_t kPageTexts = 1000, kPageCandidates = 50, kPageVectors = 200,
                         kPageWords = 500;
inline constexpr int64_t kPageCharacters = 1000;  ///< of a text

/// A page to which texts are added as they are worked on; it keeps the first of them.
class TextPage {
 public:
  const Page& page() const { return page_; }
  int64_t texts() const { return page_.data.at("texts").as_array().size(); }  ///< on the page

 protected:
  TextPage(const std::string& title, const std::string& script, const std::string& model,
           int64_t most);
  /// Counts a text. returns: whether the page is to hold it
  bool take();

  Page page_;

 private:
  int64_t most_, count_ = 0;
};

/// The tokens around each mask and the likely ones for it.
class FillPage : public TextPage {
 public:
  /// mask: as the tokenizer spells it; "[MASK]" is one too.
  FillPage(const std::string& model, std::string mask);
  void add(const std::string& text, const std::vector<std::vector<Fill>>& masks);

 private:
  std::string mask_;
};

/// The likeliest classes of each text, or image.
class ClassPage : public TextPage {
 public:
  /// top: classes of each text that are shown    unit: "text" or "image"
  ClassPage(const std::string& model, const std::vector<std::string>& labels, ClassScale scale,
            int64_t top, const std::string& unit = "text");
  /// p: of the labels, in their order    image: whose file `text` is; the page holds the first
  /// kPageImages
  void add(const std::string& text, const std::vector<double>& p, const Image* image = nullptr);

 private:
  int64_t top_;
};

/// The words of each text and the class of each.
class WordClassPage : public TextPage {
 public:
  WordClassPage(const std::string& model, const std::vector<std::string>& labels);
  /// classes: of the words; the first kPageWords are held
  void add(const std::vector<std::string>& words, const std::vector<WordClass>& classes);
};

/// How alike texts are: the cosine of each pair of their vectors.
class SimilarityPage : public TextPage {
 public:
  explicit SimilarityPage(const std::string& model);
  void add(const std::string& text, const std::vector<float>& vector);
  /// With the cosines, packed as (cosine + 1) / 2 by pack_weights(), row by row.
  Page finish() const;

 private:
  std::vector<std::vector<float>> vectors_;
};

/// x·y / (|x| |y|) of all pairs, row by row; 0 where a vector is 0. All are of one width.
std::vector<float> cosines(std::span<const std::vector<float>> vectors);

// --- heddle eval ---

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
