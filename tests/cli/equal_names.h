// Models whose id2label gives classes the same name, as ImageNet's two cranes have it.
#pragma once

#include <string>
#include <vector>

#include "heddle/base/json/json.h"
#include "tests/support/cli_runner.h"

namespace heddle::testing {

/// All classes of the model in the folder are called "crane".
inline void call_all_classes_crane(const std::string& model) {
  Json config = Json::load(model + "/config.json");
  Json names = Json::object();
  for (const auto& [id, name] : config.at("id2label").as_object()) names[id] = "crane";
  config["id2label"] = names;
  config.erase("label2id");
  write_file(model + "/config.json", config.dump());
}

/// What results call so many of them.
inline std::vector<std::string> cranes(int count) {
  std::vector<std::string> names = {"crane"};
  for (int i = 1; i < count; ++i) names.push_back(fmt::format("crane (class {})", i));
  return names;
}

inline std::vector<std::string> keys(const Json& object) {
  std::vector<std::string> names;
  for (const auto& [name, value] : object.as_object()) names.push_back(name);
  return names;
}

}  // namespace heddle::testing
