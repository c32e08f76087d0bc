// A model whose weights are damaged.
#pragma once

#include <limits>

#include "heddle/infer/loading/loaded_model.h"
#include "heddle/inspect/subject.h"
#include "heddle/models/registry.h"

namespace heddle::inspect {

/// Three tokens of a GPT-2 of one layer, each of whose weights has a NaN. folder: where it is saved
inline Subject damaged_subject(const std::string& folder) {
  nn::Parameters parameters(1);
  const auto gpt2 = make_model(
      nn::Scope(parameters),
      Json::parse(R"({"model_type": "gpt2", "vocab_size": 30, "n_positions": 8, "n_embd": 16,
                      "n_layer": 1, "n_head": 2})"));
  for (auto& p : parameters.all()) {
    p->value().data<float>()[0] = std::numeric_limits<float>::quiet_NaN();
    p->changed(true);
  }
  save_model(folder, *gpt2, parameters);
  return Subject::open(folder, {.source = "", .target = {}, .ids = {3, 4, 5}});
}

}  // namespace heddle::inspect
