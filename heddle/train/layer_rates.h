// Learning rates that fall from the heads down to the embeddings.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "heddle/nn/parameters.h"

namespace heddle::train {

/// What the rate of each parameter is multiplied by, from its name and place: in a stack of L
/// layers ("bert.encoder.layer.3.": the first number of a name) layer i has decay^(L - 1 - i);
/// what comes before the first layer of a stack (embeddings) decay^L; what comes behind the last
/// stack (poolers, heads) 1. Each stack of a model counts on its own.
/// Source: Howard & Ruder 2018, "Universal Language Model Fine-tuning"; as ELECTRA and BEiT have
/// it.
class LayerRates {
 public:
  LayerRates(const nn::Parameters& parameters, double decay);
  /// 1 for a parameter that the model did not have.
  double factor(const nn::Parameter& parameter) const;

 private:
  std::map<std::string, double> factors_;  // by name
};

}  // namespace heddle::train
