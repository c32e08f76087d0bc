// What is trained of a model that is not trained whole: chosen weights, or low-rank adapters.
#pragma once

#include <string>
#include <vector>

#include "heddle/infer/loading/adapter.h"
#include "heddle/train/config.h"

namespace heddle::train {

/// Parameters of their own that stand for parts of a model's. Only they have gradients that are
/// used, and moments in the optimizer and the state. After a backward pass through the model
/// take_gradients() makes theirs out of the model's; whenever they have changed, apply() puts them
/// into the model. A low-rank adapter (Hu et al. 2022) is W = W0 + alpha / rank * B A, so that
/// dA = alpha / rank * Bᵀ dW and dB = alpha / rank * dW Aᵀ. Buffers that are not chosen are fixed.
class TrainedParts {
 public:
  /// By config.train_only, freeze and lora_*; `fresh`: names of parameters that the model begun
  /// from lacks, which are trained whatever is said. Patterns are sought in the names of
  /// checkpoints. Errors: usage if one is no regular expression or chooses nothing, or nothing is
  /// left to train.
  TrainedParts(const TrainConfig& config, nn::Parameters& model,
               const std::vector<std::string>& fresh);
  /// True if the config asks for less than the whole model.
  static bool is_wanted(const TrainConfig& config);

  nn::Parameters& parameters() { return parameters_; }
  bool has_adapter() const { return !adapters_.empty(); }
  void take_gradients();
  void apply();
  /// Writes adapter_config.json and adapter_model.safetensors. `base`: the model that it stands on.
  void save_adapter(const std::string& folder, const std::string& base) const;

 private:
  struct Whole {  // a parameter, or the part of it that is a tensor of checkpoints
    nn::Parameter* model;
    nn::Parameter* own;
    int64_t begin;  // number of the model's where it lies
  };
  struct Adapter {
    LowRankTarget target;
    std::vector<float> base;
    nn::Parameter *a, *b;
  };
  /// alpha / rank.
  float scale() const;
  void add_whole(nn::Parameter& parameter, const nn::Part& part, const std::string& prefix);
  std::vector<std::string> adapted_modules() const;
  void add_adapter(const LowRankTarget& target);

  TrainConfig config_;
  nn::Parameters* model_;
  nn::Parameters parameters_;
  std::vector<Whole> wholes_;
  std::vector<Adapter> adapters_;
  std::vector<std::string> saved_whole_;  // modules beside the adapters
};

}  // namespace heddle::train
