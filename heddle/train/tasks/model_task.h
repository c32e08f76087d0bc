// What the tasks over models of the registry have in common: the model, what of it is trained, its
// folder, and the order of samples that are what they are.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "heddle/data/batches.h"
#include "heddle/infer/loading/loaded_model.h"
#include "heddle/train/layer_rates.h"
#include "heddle/train/tasks/task.h"
#include "heddle/train/trained_parts.h"

namespace heddle::train {

/// The config of the model in a folder, for a run that begins from it.
StackConfig config_of_model(const std::string& from);

class ModelTask : public Task {
 public:
  nn::Parameters& parameters() override { return parts_ ? parts_->parameters() : parameters_; }
  void parameters_changed() override {
    if (parts_) parts_->apply();
  }
  LossSums accumulate(int64_t epoch, std::span<const int64_t> samples, const nn::Run& run) final;
  bool trains_by_tape() const override { return !parts_; }
  std::string training_key() const override { return training_key_; }
  std::string validation_key() const override { return validation_key_; }
  int64_t batches(int64_t) override { return shuffled_.value().batches(); }
  std::vector<std::vector<int64_t>> parts(int64_t epoch, int64_t batch, int64_t parts) override;
  void save_model(const std::string& folder) const override;
  /// By layer_rate_decay.
  double rate_factor(const nn::Parameter& parameter) const override;

 protected:
  ModelTask(const TrainConfig& config, const RunPaths& paths, const std::string& run)
      : config_(config), paths_(paths), run_(run) {}

  /// Makes the model of config_.stack and takes the weights of the one that the run begins from;
  /// what that lacks (a new head) begins by the seed, which is said.
  void begin_model();
  /// Weights from elsewhere, taken when those of the model that is begun from are in place.
  virtual void take_weights() {}
  void set_keys(const std::string& training, const std::string& validation) {
    training_key_ = training + begun_from_;
    validation_key_ = validation;
  }
  /// Samples come in another order each epoch, unless batches() and batch_samples() say otherwise.
  void shuffle(int64_t samples, int64_t batch_size) {
    shuffled_.emplace(samples, batch_size, seed());
  }
  /// accumulate() into the gradients of the whole model.
  virtual LossSums accumulate_whole(int64_t epoch, std::span<const int64_t> samples,
                                    const nn::Run& run) = 0;
  /// The samples of a batch of an epoch.
  virtual std::vector<int64_t> batch_samples(int64_t epoch, int64_t batch) {
    return shuffled_.value().batch(epoch, batch);
  }

  /// What is written beside the weights.
  virtual SaveOptions save_options() const { return {}; }

  const Model& model() const { return *model_; }
  /// Those of the model, and what is trained beside it.
  nn::Parameters& whole_parameters() { return parameters_; }
  template <class Fields>
  const Fields& own() const {
    return config_.task_config.as<Fields>();
  }
  uint64_t seed() const { return static_cast<uint64_t>(config_.seed); }
  /// The numbers of at most `most` of `n` samples, spread evenly.
  static std::vector<int64_t> spread(int64_t n, int64_t most);

  TrainConfig config_;
  RunPaths paths_;
  std::string run_;

 private:
  nn::Parameters parameters_{static_cast<uint64_t>(config_.seed)};
  std::unique_ptr<Model> model_;
  std::optional<TrainedParts> parts_;  // where less than the whole model is trained
  std::optional<LayerRates> rates_;
  std::optional<ShuffledPlan> shuffled_;
  std::string training_key_, validation_key_;
  std::string begun_from_;  // checksum of the weights that are not trained, if there are such
};

}  // namespace heddle::train
