// A model and a text in it, ready to be looked into: which attention calls there are, over which
// words.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "heddle/infer/decoding/translate.h"
#include "heddle/infer/loading/loaded_model.h"
#include "heddle/nn/run.h"
#include "heddle/tensor/dtype.h"

namespace heddle::inspect {

/// The rows of a sequence: tokens, and the words that they make.
struct Side {
  struct Word {
    int64_t begin = 0, end = 0;  ///< tokens [begin, end); every token belongs to one word
    std::string text;            ///< of one that is only a space its token: "(space)"
  };
  std::string name;                 ///< "source", "target", "written", "text"
  std::vector<std::string> tokens;  ///< for the reader; one that continues a word begins with "+"
  std::vector<Word> words;

  int64_t size() const { return static_cast<int64_t>(tokens.size()); }
  /// The tokens of each occurrence of the word, letters' case counting only if that finds one;
  /// empty if it is not there.
  std::vector<int64_t> find(const std::string& word) const;
  /// "the, animal, did": at most `most` of them, for messages.
  std::string list_words(size_t most = 40) const;
};

/// The attention calls of one stack.
struct AttentionKind {
  std::string name;    ///< "encoder", "decoder", "cross", "self"
  std::string prefix;  ///< of the names that an observer is given: "cross_attentions."
  size_t queries = 0;  ///< side of the rows
  size_t keys = 0;     ///< side of the columns
  int64_t layers = 0, heads = 0;
  bool is_causal = false;
  int64_t before = 0;  ///< keys that stand before the first query: rows of a memory
};

struct SubjectOptions {
  std::string source = "";                 ///< a sentence
  std::optional<std::string> target = {};  ///< absent: the model's own translation
  std::vector<int32_t> ids = {};           ///< in place of source, where a model has no tokenizer
  /// Of a translator that is told them, see set_languages(); open() looks at them.
  std::string source_language = {}, target_language = {};
  std::optional<TranslateOptions> translation = {};  ///< of a translator; absent: its folder's
  bool truncate = false;                             ///< cut what is longer than the model takes
  Precision precision = {};
};

/// What options say, as a model reads it.
struct SubjectText {
  std::vector<std::string> texts = {};  ///< source and target; only the first of other models
  Encoding source = {};                 ///< of a translator without the end
  std::vector<int32_t> target = {};     ///< without the end
  PairMarks marks = {};                 ///< around both, but in front of the source, which has that
};
/// given: what names the model in messages. Errors: those of Subject::open() that are about texts.
SubjectText subject_text(const LoadedModel& model, const std::string& given,
                         const SubjectOptions& options);

/// What one pass computes, as often as one likes and with any observer.
class Subject {
 public:
  /// Loads the model: a translator (sides source, target: what the decoder reads, written: what it
  /// says at each position) or a model of the registry (side text).
  /// Errors: usage, naming the flag, for an empty sentence, text for a model without tokenizer, or
  /// ids for one that has one; data for a text that is not UTF-8 or too long, or a broken model.
  static Subject open(const std::string& path, const SubjectOptions& options);
  /// The same of a model that is loaded. name: path() in place of its folder
  static Subject of(std::shared_ptr<const LoadedModel> model, const SubjectText& text,
                    const Precision& precision, const std::string& name = "");

  const std::string& path() const { return path_; }    ///< of the model: "runs/m30k/best"
  const std::string& given() const { return given_; }  ///< what open() was given: "runs/m30k"
  const std::string& type() const { return type_; }
  const std::vector<Side>& sides() const { return sides_; }
  const std::vector<AttentionKind>& kinds() const { return kinds_; }
  /// "source" as given and "target" as given or translated; only the first of other models.
  const std::vector<std::string>& texts() const { return texts_; }

  /// One pass under the observer. Every attention call of every kind is seen once.
  void pass(const nn::Observer& observer) const { result(&observer); }

  /// What change() measures: "rise of the loss (nats per token)"; empty if there is nothing to
  /// measure.
  const std::string& measure() const { return measure_; }
  /// The loss of a pass without observer, nats per token of the target (or of the text); 0 if there
  /// is none.
  double loss() const { return plain_.loss; }
  /// How the result of a pass differs from that of a pass without observer.
  double change(const nn::Observer& observer) const;

 private:
  struct Result {
    double loss = 0;            // nats per token
    std::vector<float> states;  // where there is no loss: the last hidden states
  };

  Result result(const nn::Observer* observer) const;
  void be_translator(const LoadedModel& model, const SubjectText& text);
  void be_stack(const LoadedModel& model, const SubjectText& text);
  // Runs once and notes which attention calls there are of these kinds.
  void note_calls(std::vector<AttentionKind> kinds);

  std::shared_ptr<const LoadedModel> model_;
  std::string path_, given_, type_, measure_;
  std::vector<Side> sides_;
  std::vector<AttentionKind> kinds_;
  std::vector<std::string> texts_;
  std::function<Result(const nn::Run&)> run_;
  Precision precision_;
  Result plain_;
};

}  // namespace heddle::inspect
