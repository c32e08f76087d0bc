// Everything that a training run is told: task, model, optimisation, limits.
#pragma once

#include <initializer_list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "heddle/base/json/fields.h"
#include "heddle/models/config.h"
#include "heddle/models/encoder_decoder.h"
#include "heddle/models/registry.h"
#include "heddle/train/optimizer.h"

namespace heddle::train {

class Task;
struct TrainConfig;

/// The files that a training run reads.
struct RunPaths {
  std::string data = {};        ///< file or folder of the text; empty for the phrasebook
  std::string val_data = {};    ///< file of the held-out text; empty: beside or out of `data`
  std::string from = {};        ///< model whose weights are begun with; empty: none
  std::string teacher = {};     ///< model that teaches; empty: none
  std::string unlabelled = {};  ///< images that the teacher alone labels; empty: none

  template <class V>
  void fields(V& v) {
    v("data", data, "");
    v("val_data", val_data, "");
    v("from", from, "");
    v("teacher", teacher, "");
    v("unlabelled", unlabelled, "");
  }
};

/// Errors: usage for a setting that was told (by its key) and follows a teacher, where nobody
/// teaches; data if the teacher's folder is missing.
void check_teacher(const RunPaths& paths, std::initializer_list<std::pair<const char*, bool>> told);

/// What is known of a task before it is made.
struct TaskFacts {
  Head head;                       ///< of the models that it trains
  const char* scores;              ///< what validation judges them by, between commas
  int64_t updates;                 ///< of a run that is given no limit
  const char* counted = "tokens";  ///< what it reads and speed is counted in (LossSums::tokens)
  bool has_teacher = false;        ///< RunPaths::teacher may be given
};

/// The fields of a task, and what follows from them. Its file derives a struct with fields(visitor)
/// from this.
class TaskFields {
 public:
  virtual ~TaskFields() = default;

  virtual TaskFacts facts() const = 0;
  /// They point into this, through which a const one must not be written.
  virtual std::vector<Field> list() const = 0;
  virtual std::unique_ptr<TaskFields> copy() const = 0;
  /// Defaults of all other fields that suit the task, and of its own that suit the model.
  virtual void suit(TrainConfig&) {}
  /// Errors: usage or data, naming `source`, for fields that do not fit together.
  virtual void check_fit(const TrainConfig&, const std::string&) const {}
  /// Checks that the files of a run are there. Errors: usage if none is named, data if one is
  /// missing.
  virtual void check_data(const TrainConfig& config, const RunPaths& paths) const = 0;
  virtual std::unique_ptr<Task> make(const TrainConfig& config, const RunPaths& paths,
                                     const std::string& run) const = 0;
};

/// The defaults of the task T; its file instantiates this. T has: Fields, kFacts, T(TrainConfig,
/// RunPaths, run).
template <class T>
std::unique_ptr<TaskFields> new_fields();

/// Copies are independent.
class TaskConfig {
 public:
  /// The defaults. Errors: usage, naming the known tasks, for an unknown one.
  explicit TaskConfig(const std::string& task);
  explicit TaskConfig(std::unique_ptr<TaskFields> fields) : fields_(std::move(fields)) {}
  TaskConfig(const TaskConfig& other) : fields_(other.fields_->copy()) {}
  TaskConfig& operator=(const TaskConfig& other) {
    fields_ = other.fields_->copy();
    return *this;
  }

  TaskFields* operator->() { return fields_.get(); }
  const TaskFields* operator->() const { return fields_.get(); }
  /// As fields of a kind that it is known to have.
  template <class Fields>
  const Fields& as() const {
    return dynamic_cast<const Fields&>(*fields_);
  }

 private:
  std::unique_ptr<TaskFields> fields_;
};

/// The tasks, in order: translation, causal_lm, masked_lm, sequence_classification, ...
std::vector<std::string> task_names();
/// Types of models that are trained for a head; the first is the default.
std::vector<std::string> trainable_types(Head head);
/// The first task that trains models of the type. Errors: usage if none does.
std::string task_of_type(const std::string& model_type);
/// The task that trains models with this head; "" where that is not one alone (none, pretraining).
std::string task_of_head(Head head);

/// The config of a model of the registry as a value: copies are independent.
class StackConfig {
 public:
  /// The defaults. Errors: data, listing the known ones, for an unknown type.
  explicit StackConfig(const std::string& type) : StackConfig(model_config(type)) {}
  explicit StackConfig(std::unique_ptr<ModelConfig> config) : config_(std::move(config)) {}
  StackConfig(const StackConfig& other) { *this = other; }
  StackConfig& operator=(const StackConfig& other);

  const std::string& type() const { return config_->type; }
  /// Fields that point into this config.
  std::vector<Field> fields() const { return config_->fields(); }
  HubConfig& hub() { return config_->hub; }
  /// An integer field by the first of these names that it has; -1 if it has none.
  int64_t integer(std::initializer_list<const char*> keys) const;
  /// Width of the residual stream, whatever the model calls it; of stages, that of the last.
  int64_t width() const;
  void set(const std::string& key, int64_t value);
  /// Errors: data for fields that do not fit together, or a family without that head.
  std::unique_ptr<Model> make(const nn::Scope& s) const { return config_->make(s); }
  ModelConfig& config() { return *config_; }
  const ModelConfig& config() const { return *config_; }

 private:
  std::unique_ptr<ModelConfig> config_;
};

/// What every task is told. fields() visits those of the task and of its model too.
struct TrainConfig {
  std::string task = "translation";
  TaskConfig task_config{task};
  std::string model_type = default_model_type(head());
  StackConfig stack{model_type};

  std::string train_only, freeze, lora_targets;
  int64_t lora_rank = 0;
  double lora_alpha = 16;
  bool lora_merge = false;

  std::string optimizer = "adam", schedule = "inverse_sqrt";
  double learning_rate = 5e-4, min_learning_rate = 0, layer_rate_decay = 1;
  int64_t warmup_updates = 4000;
  double adam_beta1 = 0.9, adam_beta2 = 0.98, adam_epsilon = 1e-9, weight_decay = 0;
  double momentum = 0.9, clip_norm = 0, ema_decay = 0;
  bool nesterov = true;
  std::string average = "none";
  int64_t average_count = 10, accumulate = 1, shards = 1;

  int64_t max_updates = 0;
  double max_minutes = 0;
  int64_t checkpoint_every = 1000, validate_every = 1000, log_every = 100;
  std::string select = "loss", early_stop = "none";
  int64_t select_window = 1, patience = 10;
  std::string precision = "auto";
  bool recompute = false;
  int64_t seed = 1;

  template <class V>
  void fields(V& v) {
    v("task", task, "what is trained", one_of(task_names()));
    v("model_type", model_type, "model that is trained", one_of(trainable_types(head())));
    for (const std::vector<Field>& owned : {stack.fields(), task_config->list()}) {
      for (const Field& f : owned) {
        std::visit([&](auto* member) { v(f.key.c_str(), *member, f.help.c_str(), f.rule); },
                   f.member);
      }
    }
    part_fields(v);
    v("accumulate", accumulate, "parts that a batch is computed in, to save memory",
      between(1, 1 << 20));
    v("shards", shards,
      "equal parts of a batch, each of `accumulate` parts, whose gradients are summed in an order "
      "of their own: as many ranks may share them, to the same bits; a power of two",
      between(1, 64));
    v("optimizer", optimizer,
      "adam or sgd with momentum; adamw and sgdw: with decoupled weight decay; muon: orthogonal "
      "steps for the matrices of hidden layers, adamw for the rest",
      one_of({"adam", "adamw", "sgd", "sgdw", "muon"}));
    v("momentum", momentum, "of sgd and muon", from_below(0, 1));
    v("nesterov", nesterov, "Nesterov's momentum, of sgd and muon");
    v("schedule", schedule, "of the learning rate",
      one_of({"noam", "inverse_sqrt", "cosine", "linear", "constant"}));
    v("learning_rate", learning_rate, "at its peak (noam: a factor)", at_least(0));
    v("min_learning_rate", min_learning_rate, "at the end of cosine and linear", at_least(0));
    v("layer_rate_decay", layer_rate_decay,
      "the learning rate of each layer is this times that of the layer above it, and of embeddings "
      "that of the lowest; heads learn at the whole rate: for fine-tuning (0.8); 1: all alike",
      between(0.01, 1));
    v("warmup_updates", warmup_updates, "updates until the peak", at_least(0));
    v("adam_beta1", adam_beta1, "decay of the mean of gradients", from_below(0, 1));
    v("adam_beta2", adam_beta2, "decay of the mean of their squares", from_below(0, 1));
    v("adam_epsilon", adam_epsilon, "added to the root", at_least(0));
    v("weight_decay", weight_decay, "of matrices, but for positions and class tokens of images",
      at_least(0));
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
    v("select", select, "what makes a model the best", one_of(score_names()));
    v("select_window", select_window,
      "validations over whose mean `select` chooses: of noisy scores a smoothed curve; 1: each "
      "alone",
      between(1, 1000));
    std::vector<std::string> stops = score_names();
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
  Head head() const { return task_config->facts().head; }
  /// What validation can judge its models by: "loss", and metrics.
  std::vector<std::string> score_names() const;
  OptimizerOptions optimizer_options() const;
  ScheduleOptions schedule_options() const;
  /// Checks every field's rule and what no single field can. Errors: usage, naming `source`.
  void check(const std::string& source) const;

 private:
  // Of what is trained less than the whole model.
  template <class V>
  void part_fields(V& v) {
    v("train_only", train_only,
      "train only weights whose name has this regular expression; with adapters: these too, whole");
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
/// A recipe: JSON with fields, and "preset" if it starts from one. `source` opens messages.
/// Errors: data for an unknown key or a value of a wrong type.
TrainConfig parse_config(const Json& json, const std::string& source);

}  // namespace heddle::train
