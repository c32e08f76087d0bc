// The recipes of recipes/*.json, compiled into the program by the build.
#pragma once

#include <span>
#include <string_view>

namespace heddle::train {

struct Recipe {
  std::string_view name;  ///< "multi30k-en-de"
  std::string_view json;
};

/// All recipes, by name.
std::span<const Recipe> recipes();

}  // namespace heddle::train
