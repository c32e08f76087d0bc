// Models by the name that config.json gives them.
#pragma once

#include "heddle/models/model.h"

namespace heddle {

/// The names of the families, in order.
std::vector<std::string> model_types();

/// The config of a family with its defaults. Errors: data, beginning with `source`, for an unknown
/// type (the known ones are listed).
std::unique_ptr<ModelConfig> model_config(const std::string& type, const std::string& source = "");

/// The config of `model_type` in a config.json; the other keys by ModelConfig::read().
/// Errors: data, naming `source`, also if there is no model_type.
std::unique_ptr<ModelConfig> read_model_config(const Json& json, const std::string& source);

/// The type that is trained for a head where none is named. Errors: internal for one of none.
std::string default_model_type(Head head);
/// What `architectures` calls that type with the head: "BertForMaskedLM". Errors: as above.
std::string class_of_head(Head head);

/// A published size: "base", "gpt2-medium", "bert-large". Errors: usage for an unknown name (the
/// nearest is proposed).
std::vector<std::string> model_presets();
std::unique_ptr<ModelConfig> preset_config(const std::string& name);
/// Its model_type and the sizes that it sets. Errors: as above.
Json preset_sizes(const std::string& name);

/// A model of a config.json with parameters under `s`, made or to be loaded.
std::unique_ptr<Model> make_model(const nn::Scope& s, const Json& json,
                                  const std::string& source = "config");

}  // namespace heddle
