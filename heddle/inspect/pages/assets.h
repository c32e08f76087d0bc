// The scripts and the style of heddle/inspect/assets, compiled into the program by the build.
#pragma once

#include <span>
#include <string_view>

namespace heddle::inspect {

struct Asset {
  std::string_view name;  ///< "heatmap.js"
  std::string_view text;
};

/// All assets, by name.
std::span<const Asset> assets();

/// The text of one. Errors: internal if there is none of that name.
std::string_view asset(std::string_view name);

}  // namespace heddle::inspect
