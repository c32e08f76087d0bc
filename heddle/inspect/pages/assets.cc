// The table of assets, from the file that the build writes.
#include "heddle/inspect/pages/assets.h"

#include <array>

#include "heddle/base/error.h"

namespace heddle::inspect {
namespace {

constexpr auto kAssets = std::to_array<Asset>({
#include "assets.inc"  // written by CMakeLists.txt
});

}  // namespace

std::span<const Asset> assets() { return kAssets; }

std::string_view asset(std::string_view name) {
  for (const Asset& a : kAssets) {
    if (a.name == name) return a.text;
  }
  fail(ErrorKind::internal, "heddle/inspect/assets has no '{}'", name);
}

}  // namespace heddle::inspect
