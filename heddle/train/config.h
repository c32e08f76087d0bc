// Everything that a training run is told: task, model, data, optimisation, limits.
#pragma once

#include <string>
#include <vector>

#include "heddle/train/optimizer.h"
#include "heddle/train/schedule.h"
#include "heddle/train/stack_config.h"

namespace heddle::train {

/// The tasks, in order: translation, causal_lm, masked_lm, sequence_classification, ...
std::vector<std::string> task_names();
/// Types of models that a task trains; the first is its default. Errors: usage for an unknown task.
std::vector<std::string> trainable_types(const std::string& task);
/// What validation can judge models of a task by: "loss", and metrics.
std::vector<std::string> score_names(const std::string& task);

/// The fields that a task and its model use are those that it has: fields() visits no others.
struct TrainConfig {
  std::string task = "translation", model_type = default_model_type(Head::target_token);
  StackConfig stack{model_type};

  std::string corpus = "files", source_lang = "en", target_lang = "de";
  std::string tokenizer, target_tokenizer, tokenizer_type = "bpe";
  int64_t max_tokens = 256;
  int64_t batch_tokens = 4096, accumulate = 1, sort_pool = 0;

  int64_t block_size = 0, batch_size = 16;
  std::string sampling = "random", text_key = "text", label_key = "label";
  double val_share = 0.1, mask_share = 0.15;
  bool next_sentence = false;
  double plm_probability = 1.0 / 6;
  int64_t max_span_length = 5;
  std::string train_only, freeze, lora_targets;
  int64_t lora_rank = 0;
  double lora_alpha = 16;
  bool lora_merge = false;

  std::string optimizer = "adam", schedule = "inverse_sqrt";
  double learning_rate = 5e-4, min_learning_rate = 0;
  int64_t warmup_updates = 4000;
  double adam_beta1 = 0.9, adam_beta2 = 0.98, adam_epsilon = 1e-9, weight_decay = 0;
  double label_smoothing = 0.1, r_drop = 0, clip_norm = 0, ema_decay = 0;
  std::string average = "none";
  int64_t average_count = 10;

  int64_t max_updates = 0;
  double max_minutes = 0;
  int64_t checkpoint_every = 1000, validate_every = 1000, log_every = 100;
  std::string select = "loss", early_stop = "none";
  int64_t patience = 10, validation_beam = 1;
  std::string precision = "auto";
  bool recompute = false;
  int64_t seed = 1;

  template <class V>
  void fields(V& v) {
    v("task", task, "what is trained", one_of(task_names()));
    v("model_type", model_type, "model that is trained", one_of(trainable_types(task)));
    for (const Field& f : stack.fields()) {
      std::visit([&](auto* member) { v(f.key.c_str(), *member, f.help.c_str(), f.rule); },
                 f.member);
    }
    head() == Head::target_token ? pair_fields(v) : text_fields(v);
    part_fields(v);
    v("accumulate", accumulate, "parts that a batch is computed in, to save memory", at_least(1));
    v("optimizer", optimizer, "adam, or adamw with decoupled weight decay",
      one_of({"adam", "adamw"}));
    v("schedule", schedule, "of the learning rate",
      one_of({"noam", "inverse_sqrt", "cosine", "linear", "constant"}));
    v("learning_rate", learning_rate, "at its peak (noam: a factor)", at_least(0));
    v("min_learning_rate", min_learning_rate, "at the end of cosine and linear", at_least(0));
    v("warmup_updates", warmup_updates, "updates until the peak", at_least(0));
    v("adam_beta1", adam_beta1, "decay of the mean of gradients", from_below(0, 1));
    v("adam_beta2", adam_beta2, "decay of the mean of their squares", from_below(0, 1));
    v("adam_epsilon", adam_epsilon, "added to the root", at_least(0));
    v("weight_decay", weight_decay, "of matrices", at_least(0));
    v("clip_norm", clip_norm, "largest norm of the gradient; 0: no limit", at_least(0));
    v("ema_decay", ema_decay, "of the moving average of the weights; 0: none", from_below(0, 1));
    v("average", average, "of weights at validations: the last or the best ones",
      one_of({"none", "last", "best"}));
    v("average_count", average_count, "how many of them", at_least(2));
    v("max_updates", max_updates, "updates in all; 0: no limit", at_least(0));
    v("max_minutes", max_minutes, "minutes in all, over all resumes; 0: no limit", at_least(0));
    v("checkpoint_every", checkpoint_every, "updates between saved states", at_least(1));
    v("validate_every", validate_every, "updates between validations", at_least(1));
    v("log_every", log_every, "updates between lines of log.jsonl", at_least(1));
    v("select", select, "what makes a model the best", one_of(score_names(task)));
    std::vector<std::string> stops = score_names(task);
    stops.insert(stops.begin(), "none");
    v("early_stop", early_stop, "stop when this gets no better", one_of(std::move(stops)));
    v("patience", patience, "validations without a better one before stopping", at_least(1));
    v("precision", precision, "auto is bf16 where the processor has it",
      one_of({"f32", "bf16", "auto"}));
    v("recompute", recompute,
      "keep what enters each layer only, and compute it again in the backward pass: less memory, a "
      "third more time");
    v("seed", seed, "of everything random", at_least(0));
  }

  /// That of the models that the task trains.
  Head head() const;
  OptimizerOptions optimizer_options() const;
  ScheduleOptions schedule_options() const;
  /// Checks every field's rule and what no single field can. Errors: usage, naming `source`.
  void check(const std::string& source) const;

 private:
  template <class V>
  void pair_fields(V& v) {
    v("corpus", corpus, "files of --data, or pairs that heddle generates: see heddle phrasebook",
      one_of({"files", "phrasebook", "agreement"}));
    v("source_lang", source_lang, "suffix of the source files");
    v("target_lang", target_lang, "suffix of the target files");
    v("tokenizer", tokenizer, "a SentencePiece .model to use; empty: one is trained");
    v("target_tokenizer", target_tokenizer,
      "one for the target alone, with --decoder-vocab-size; empty: one is trained there");
    v("tokenizer_type", tokenizer_type, "of the tokenizer that is trained",
      one_of({"bpe", "unigram"}));
    v("max_tokens", max_tokens, "longest sentence used in training, in tokens, the end included",
      at_least(2));
    v("batch_tokens", batch_tokens, "source and target tokens of a batch, at most", at_least(2));
    v("sort_pool", sort_pool, "pairs sorted by length together; 0: all", at_least(0));
    v("label_smoothing", label_smoothing, "share of probability given to all tokens",
      from_below(0, 1));
    v("r_drop", r_drop,
      "R-Drop: two passes over each batch, this times their divergence added to the loss; 0: off",
      at_least(0));
    v("validation_beam", validation_beam, "beam of the validation's BLEU; 1: greedy", at_least(1));
  }
  template <class V>
  void text_fields(V& v) {
    v("tokenizer", tokenizer, "a tokenizer to use; empty: one is made of the text");
    v("tokenizer_type", tokenizer_type,
      "of the one that is made: char has a token for each character, wordpiece is BERT's",
      one_of({"char", "bpe", "unigram", "wordpiece"}));
    v("block_size", block_size, "tokens of a sequence; 0: as many as the model takes", at_least(0));
    v("batch_size", batch_size, "sequences of a batch", between(1, 1 << 30));
    if (task == "causal_lm") {
      v("sampling", sampling,
        "random: sequences begin anywhere in the text; consecutive: an epoch goes once through it; "
        "streams: so too, in batch_size parts side by side, along which a model remembers",
        one_of({"random", "consecutive", "streams"}));
    } else if (task == "masked_lm") {
      v("mask_share", mask_share, "share of the tokens that are predicted", between(0, 1));
      v("next_sentence", next_sentence,
        "also tell whether the second half of a sequence follows the first");
    } else if (task == "permutation_lm") {
      v("plm_probability", plm_probability, "share of the tokens that are predicted",
        {.low = 0, .high = 1, .is_low_open = true});
      v("max_span_length", max_span_length, "of tokens that are predicted side by side, at most",
        between(1, 1 << 20));
    } else {
      v("label_key", label_key, "where it has its label, or the list of its words' labels");
    }
    v("val_share", val_share,
      "share of the text, its end, that is held out without --val-data; of labelled texts the seed "
      "chooses which, and leaves one of each label to train on",
      between(0, 1));
    v("text_key", text_key,
      "where a line of JSON, or a row of a table, has its text; a number counts columns without "
      "names");
  }
  // Of what is trained less than the whole model.
  template <class V>
  void part_fields(V& v) {
    v("train_only", train_only, "train only weights whose name has this regular expression");
    v("freeze", freeze, "leave weights whose name has this regular expression as they are");
    v("lora_rank", lora_rank, "train adapters of this rank instead of weights; 0: none",
      at_least(0));
    v("lora_alpha", lora_alpha, "adapters count lora_alpha / lora_rank", above(0));
    v("lora_targets", lora_targets,
      "layers with adapters, by the ends of their names between commas; empty: queries and values");
    v("lora_merge", lora_merge, "also write the model with its adapters added");
  }
};

/// The settings of a task before anything else is said. Errors: usage, naming the known tasks, or
/// the types that the task trains; an empty type is the default.
TrainConfig default_config(const std::string& task, const std::string& model_type = "");

/// The first task that trains models of the type. Errors: usage if none does.
std::string task_of_type(const std::string& model_type);

/// The task that trains models with this head; "" where that is not one alone (none, pretraining).
std::string task_of_head(Head head);

/// Ends a run that has no limit after as many updates as suit its task. returns: whether it had
/// none
bool set_default_end(TrainConfig& config);

/// Fields that may change when a run goes on: its limits, and what changes no bits.
bool is_limit(const std::string& key);

/// Sets the sizes of the model to a published one, see model_presets(). Errors: usage, naming the
/// known ones, or for one of another model_type.
void apply_preset(TrainConfig& config, const std::string& name);

/// Names of the recipes in the program.
std::vector<std::string> recipe_names();
/// A recipe of the program. Errors: usage, naming the known ones.
TrainConfig load_recipe(const std::string& name);
/// A recipe file: JSON with fields, and "preset" if it starts from one.
/// Errors: data for broken JSON or an unknown key.
TrainConfig load_config(const std::string& path);
/// The same from JSON.
TrainConfig parse_config(const Json& json, const std::string& source);

}  // namespace heddle::train
