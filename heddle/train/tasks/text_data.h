// What the tasks over texts are told, and their tokenizer: given, of a model, or made of the text.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "heddle/data/documents.h"
#include "heddle/text/tokenizer.h"
#include "heddle/train/config.h"

namespace heddle::train {

/// fields() of a task puts its own between these two parts.
class TextFields : public TaskFields {
 public:
  std::string tokenizer, tokenizer_type = "wordpiece", text_key = "text";
  int64_t block_size = 0, batch_size = 16;
  double val_share = 0.1;

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

/// The tokenizer in RUN/tokenizer, put there first if there is none: the task's `tokenizer`, else
/// that of the model that the run begins `from` (may be empty), else one of its tokenizer_type made
/// of `texts`. Errors: those of Tokenizer::load() and the trainers.
Tokenizer open_text_tokenizer(const TrainConfig& config, std::span<const std::string> texts,
                              const std::string& from, const std::string& run);

/// Ids of each text, without special ones, on all threads.
std::vector<std::vector<int32_t>> encode_all(const Tokenizer& tokenizer,
                                             std::span<const std::string> texts);

}  // namespace heddle::train
