// Models by the name that config.json gives them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "heddle/models/model.h"

namespace heddle {

/// The names that make_model() knows, in order.
std::vector<std::string> model_types();
bool is_model_type(const std::string& type);

/// Reads a config and makes its model with parameters under `s`. `unknown` receives the keys of
/// `config` that the model does not know, for the caller to judge.
/// Errors: data, naming `source`, for an unknown type (the known ones are listed), a key of a wrong
/// type or value, or fields that do not fit together.
std::unique_ptr<Model> make_model(const std::string& type, const nn::Scope& s, const Json& config,
                                  const std::string& source, std::vector<std::string>& unknown);

}  // namespace heddle
