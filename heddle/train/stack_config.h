// The config of a model of the registry as a value: what TrainConfig holds.
#pragma once

#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "heddle/models/encoder_decoder.h"
#include "heddle/models/registry.h"

namespace heddle::train {

/// Copies are independent.
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
  /// Width of the residual stream, whatever the model calls it.
  int64_t width() const { return integer({"n_embd", "hidden_size", "d_model", "dim"}); }
  void set(const std::string& key, int64_t value);
  /// Errors: data for fields that do not fit together, or a family without that head.
  std::unique_ptr<Model> make(const nn::Scope& s) const { return config_->make(s); }
  ModelConfig& config() { return *config_; }
  const ModelConfig& config() const { return *config_; }

 private:
  std::unique_ptr<ModelConfig> config_;
};

/// Of a model of sources and targets. Errors: those of make().
EncoderDecoderFacts facts_of(const StackConfig& config);

}  // namespace heddle::train
