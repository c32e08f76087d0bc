// Configs of models by name, whose weights nobody makes.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "heddle/models/registry.h"

namespace heddle::inspect {

/// Names that find_size() knows beside paths, in order.
std::vector<std::string> size_names();

/// A config by name: a preset or recipe of heddle, a published size (gpt2-xl, gpt3, bert-large), a
/// config.json or settings file, a model directory or a run; or "stack", layers alone, for sums
/// over pixels, patches, any sequence. `settings` are FIELD=VALUE.
/// Errors: usage for an unknown name or field (the nearest is proposed), data for a broken file or
/// fields that do not fit together.
std::unique_ptr<ModelConfig> find_size(const std::string& name,
                                       const std::vector<std::string>& settings = {});

}  // namespace heddle::inspect
