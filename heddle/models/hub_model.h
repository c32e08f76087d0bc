// A model as transformers has it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "heddle/nn/parameters.h"

namespace heddle {

/// A tensor of a checkpoint, f32.
struct NamedFloats {
  std::string name;
  std::vector<int64_t> shape;
  std::vector<float> values;
};

/// A model of a family that Hugging Face's transformers has.
struct HubModel {
  Json config;
  std::vector<NamedFloats> tensors;
};

/// Of a format that transformers has not.
struct WithHubModel {
  /// The model that computes the same in transformers, if it is another. Errors: data, naming
  /// `source` and the field, where there is none.
  virtual std::optional<HubModel> hub_model(const nn::Parameters& parameters,
                                            const std::string& source) const = 0;
};

}  // namespace heddle
