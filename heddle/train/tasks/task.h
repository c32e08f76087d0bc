// What a training run is about: data, model, loss and scores. The loop (trainer.h) knows no more.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "heddle/base/json/json.h"
#include "heddle/dist/group.h"
#include "heddle/nn/parameters.h"
#include "heddle/nn/run.h"
#include "heddle/train/config.h"
#include "heddle/train/run/state.h"
#include "heddle/train/scores.h"

namespace heddle::train {

class Task {
 public:
  virtual ~Task() = default;

  /// What is trained. They stay where they are as long as the task lives.
  virtual nn::Parameters& parameters() = 0;
  /// Differ whenever the text that is trained or validated on does: a run goes on with its own.
  virtual std::string training_key() const = 0;
  virtual std::string validation_key() const = 0;

  /// Files of caches that the task reads, which it made if they were not there.
  virtual std::vector<std::string> caches() const { return {}; }

  /// Batches of an epoch, at least 1. Which samples they hold is a pure function of the seed, the
  /// epoch and the lengths of the samples, so that a resume needs no more than the place.
  virtual int64_t batches(int64_t epoch) = 0;
  /// The samples of a batch (their numbers in the epoch) in at most `parts` parts.
  virtual std::vector<std::vector<int64_t>> parts(int64_t epoch, int64_t batch, int64_t parts) = 0;
  /// Adds the gradients of the summed loss over some samples of an epoch to the parameters, by one
  /// backward pass.
  virtual LossSums accumulate(int64_t epoch, std::span<const int64_t> samples,
                              const nn::Run& run) = 0;

  /// Whether accumulate() adds to parameters() by nothing but the backward pass, so that a gradient
  /// that is final there is final.
  virtual bool trains_by_tape() const { return true; }

  /// What batches hand on to the next one beside the parameters (states that a model remembers), by
  /// name: they came from parameters that are gone, so a state of the run keeps them.
  virtual NamedTensors carried() const { return {}; }
  /// Takes back what carried() gave before this batch of this epoch. Errors: data if it does not
  /// fit.
  virtual void carry_on(const NamedTensors&, int64_t, int64_t) {}

  /// What the learning rate is multiplied by for one of the parameters.
  virtual double rate_factor(const nn::Parameter&) const { return 1; }

  /// To be called when parameters() have changed otherwise than by accumulate().
  virtual void parameters_changed() {}

  /// Scores the weights on the held-out text, which the ranks share: all of them call it, and have
  /// the same score, of the same bits as of one rank. See dist::share_out().
  virtual ValidationScore validate(const nn::Run& run, dist::Group& group) = 0;
  /// What the last validate() found out beside its scores, for log and report: an object of numbers
  /// and of "warnings", texts; null: nothing.
  virtual Json findings() const { return {}; }
  /// A few held-out samples and what the model makes of them, an object of strings each.
  virtual std::vector<Json> samples() = 0;
  /// Writes a model directory.
  virtual void save_model(const std::string& folder) const = 0;
  /// The run is at its end, and its best model in this folder, which all ranks see: what is left to
  /// be found out of it. All ranks call it; rank 0 alone writes.
  virtual void finish(const std::string&, dist::Group&) {}
};

/// Checks that the files of a run are there, before anything is written, and the model that
/// adapters stand on. Errors: usage if none is named, data if one is missing.
void check_data(const TrainConfig& config, const RunPaths& paths);

/// The fields of the class T, which opens the data of a run, makes its tokenizer if need be (once:
/// it stays in the folder `run`) and its model. Errors: those of the readers, by file and place.
template <class T>
class FieldsOf final : public T::Fields {
 public:
  TaskFacts facts() const override { return T::kFacts; }
  std::vector<Field> list() const override { return FieldList(*this); }
  std::unique_ptr<TaskFields> copy() const override { return std::make_unique<FieldsOf>(*this); }
  std::unique_ptr<Task> make(const TrainConfig& config, const RunPaths& paths,
                             const std::string& run) const override {
    return std::make_unique<T>(config, paths, run);
  }
};

template <class T>
std::unique_ptr<TaskFields> new_fields() {
  return std::make_unique<FieldsOf<T>>();
}

}  // namespace heddle::train
