// What the tasks over models of the registry have in common: the model, its tokenizer (given, of a
// model, or made of the text), its folder, and the order of samples that are what they are.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "heddle/data/batches.h"
#include "heddle/data/documents.h"
#include "heddle/infer/loading/loaded_model.h"
#include "heddle/train/batches/sequences.h"
#include "heddle/train/tasks/task.h"
#include "heddle/train/trained_parts.h"

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

/// Ids of each text, without special ones, on all threads.
std::vector<std::vector<int32_t>> encode_all(const Tokenizer& tokenizer,
                                             std::span<const std::string> texts);

/// The config of the model in a folder, for a run that begins from it.
StackConfig config_of_model(const std::string& from);

class StackTask : public Task {
 public:
  nn::Parameters& parameters() override { return parts_ ? parts_->parameters() : parameters_; }
  void parameters_changed() override {
    if (parts_) parts_->apply();
  }
  LossSums accumulate(int64_t epoch, std::span<const int64_t> samples, const nn::Run& run) final;
  std::string training_key() const override { return training_key_; }
  std::string validation_key() const override { return validation_key_; }
  std::vector<std::vector<int64_t>> parts(int64_t epoch, int64_t batch, int64_t parts) override;
  void save_model(const std::string& folder) const override;

 protected:
  StackTask(const TrainConfig& config, const RunPaths& paths, const std::string& run)
      : config_(config), paths_(paths), run_(run) {}

  /// Opens the tokenizer, made of `texts` if need be.
  void open_tokenizer(std::span<const std::string> texts);
  /// Makes the model over the tokenizer, with `labels` if its head has classes, see begin_model().
  void make_model(Head head, const std::vector<std::string>& labels = {});
  /// Makes the model of config_.stack and takes the weights of the one that the run begins from;
  /// what that lacks (a new head) begins by the seed, which is said.
  void begin_model();
  void set_keys(const std::string& training, const std::string& validation) {
    training_key_ = training + begun_from_;
    validation_key_ = validation;
  }
  /// Notes what is trained and validated on.
  void note_keys(std::span<const int32_t> train, std::span<const int32_t> val);
  /// Most tokens of a sequence: block_size, or what the model takes. Errors: usage if that is less.
  int64_t block_size() const;
  /// The same where each sequence is that long. Errors: usage, too, if a model takes any length and
  /// block_size says none.
  int64_t whole_block_size() const;
  /// accumulate() into the gradients of the whole model.
  virtual LossSums accumulate_whole(int64_t epoch, std::span<const int64_t> samples,
                                    const nn::Run& run) = 0;
  /// The samples of a batch of an epoch.
  virtual std::vector<int64_t> batch_samples(int64_t epoch, int64_t batch) = 0;

  /// What is written beside the weights.
  virtual SaveOptions tokenizers() const { return {.tokenizer = &*tokenizer_}; }

  const Tokenizer& tokenizer() const { return *tokenizer_; }
  const TokenModel& model() const { return model_->need<TokenModel>("train"); }
  template <class Fields>
  const Fields& own() const {
    return config_.task_config.as<Fields>();
  }
  const TextFields& text() const { return own<TextFields>(); }
  uint64_t seed() const { return static_cast<uint64_t>(config_.seed); }
  /// The numbers of at most `most` of `n` samples, spread evenly.
  static std::vector<int64_t> spread(int64_t n, int64_t most);

  TrainConfig config_;
  RunPaths paths_;
  std::string run_;

 private:
  std::optional<Tokenizer> tokenizer_;
  nn::Parameters parameters_{static_cast<uint64_t>(config_.seed)};
  std::unique_ptr<Model> model_;
  std::optional<TrainedParts> parts_;  // where less than the whole model is trained
  std::string training_key_, validation_key_;
  std::string begun_from_;  // checksum of the weights that are not trained, if there are such
};

/// Over samples that come in another order each epoch.
class ShuffledTask : public StackTask {
 public:
  int64_t batches(int64_t) override { return plan_->batches(); }

 protected:
  using StackTask::StackTask;
  /// Says how many samples there are to train on.
  void shuffle(int64_t samples) { plan_.emplace(samples, text().batch_size, seed()); }

 private:
  std::vector<int64_t> batch_samples(int64_t epoch, int64_t batch) override {
    return plan_->batch(epoch, batch);
  }

  std::optional<ShuffledPlan> plan_;
};

/// Over documents that are cut into sequences.
class ChunkTask : public ShuffledTask {
 protected:
  using ShuffledTask::ShuffledTask;

  /// Cuts the documents into sequences that leave room for `special` ids, once the model is made.
  /// Errors: usage if block_size leaves no room; data if no sequence is left to train or validate.
  void cut(const DocumentSplit& split, int64_t special);

  Chunks train_, val_;
};

}  // namespace heddle::train
