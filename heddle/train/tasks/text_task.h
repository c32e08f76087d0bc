// What the tasks over texts have in common: where the texts are, their tokenizer (given, of a
// model, or made of them), and the length of sequences.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "heddle/data/documents.h"
#include "heddle/text/subword_sampler.h"
#include "heddle/train/batches/sequences.h"
#include "heddle/train/tasks/model_task.h"

namespace heddle::train {

/// fields() of a task puts its own between these parts; subword_fields() where subwords are drawn.
class TextFields : public TaskFields {
 public:
  std::string tokenizer, tokenizer_type = "wordpiece", text_key = "text";
  int64_t block_size = 0, batch_size = 16;
  double val_share = 0.1, text_sampling = 0;

  void suit(TrainConfig& config) override;
  void check_data(const TrainConfig& config, const RunPaths& paths) const override;
  /// The files that are read.
  DocumentFiles files(const RunPaths& paths) const;

 protected:
  template <class V>
  void sequence_fields(V& v) {
    v("tokenizer", tokenizer, "a tokenizer to use; empty: one is made of the text");
    v("tokenizer_type", tokenizer_type,
      "of the one that is made: char has a token for each character, wordpiece is BERT's",
      one_of({"char", "bpe", "unigram", "wordpiece"}));
    v("block_size", block_size, "tokens of a sequence; 0: as many as the model takes", at_least(0));
    v("batch_size", batch_size, "sequences of a batch", between(1, 1 << 30));
  }
  template <class V>
  void subword_fields(V& v) {
    v("text_sampling", text_sampling,
      "the text that is trained on is cut into other subwords each epoch: of a bpe tokenizer the "
      "share of merges left out (0.1), of a unigram one the power of probabilities they are drawn "
      "by (0.2); 0: never",
      between(0, 1));
  }
  template <class V>
  void file_fields(V& v) {
    v("val_share", val_share,
      "share of the text, its end, that is held out without `val_data`; of labelled texts the seed "
      "chooses which, and leaves one of each label to train on",
      between(0, 1));
    v("text_key", text_key,
      "where a line of JSON, or a row of a table, has its text; a number counts columns without "
      "names");
  }
};

/// Ids of each text, without special ones, on all threads.
std::vector<std::vector<int32_t>> encode_all(const Tokenizer& tokenizer,
                                             std::span<const std::string> texts);

class TextTask : public ModelTask {
 protected:
  using ModelTask::ModelTask;

  /// Opens the tokenizer, made of `texts` if need be.
  void open_tokenizer(std::span<const std::string> texts);
  /// Makes the model over the tokenizer, with `labels` if its head has classes, see begin_model().
  void make_model(Head head, const std::vector<std::string>& labels = {});
  /// Notes what is trained and validated on.
  void note_keys(std::span<const int32_t> train, std::span<const int32_t> val);
  /// Most tokens of a sequence: block_size, or what the model takes. Errors: usage if that is less.
  int64_t block_size() const;
  /// The same where each sequence is that long. Errors: usage, too, if a model takes any length and
  /// block_size says none.
  int64_t whole_block_size() const;

  SaveOptions save_options() const override { return {.tokenizer = &*tokenizer_}; }

  const Tokenizer& tokenizer() const { return *tokenizer_; }
  /// Draws the subwords of the training text where text_sampling is above 0; nullptr: it is 0.
  const SubwordSampler* sampler() const { return sampler_ ? &*sampler_ : nullptr; }
  /// What those of a part of the text are drawn by: a pure function of seed, epoch and part.
  RngStream subword_stream(int64_t epoch, int64_t part) const;
  const TokenModel& model() const { return ModelTask::model().need<TokenModel>("train"); }
  const TextFields& text() const { return own<TextFields>(); }

 private:
  std::optional<Tokenizer> tokenizer_;
  std::optional<SubwordSampler> sampler_;
};

/// Over documents that are cut into sequences.
class ChunkTask : public TextTask {
 protected:
  using TextTask::TextTask;

  /// Cuts the documents into sequences that leave room for `special` ids, once the model is made.
  /// Errors: usage if block_size leaves no room; data if no sequence is left to train or validate.
  void cut(const DocumentSplit& split, int64_t special);

  Chunks train_, val_;
};

}  // namespace heddle::train
