// The tasks by name, and what each is told beside the rest, as a value.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "heddle/base/json/fields.h"
#include "heddle/models/config.h"

namespace heddle::train {

class Task;
struct RunPaths;
struct TrainConfig;

/// What is known of a task before it is made.
struct TaskFacts {
  Head head;           ///< of the models that it trains
  const char* scores;  ///< what validation judges them by, between commas
  int64_t updates;     ///< of a run that is given no limit
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

}  // namespace heddle::train
