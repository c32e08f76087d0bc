// The table of recipes, from the file that the build writes.
#include "heddle/train/run/recipes.h"

#include <array>

namespace heddle::train {
namespace {

constexpr auto kRecipes = std::to_array<Recipe>({
#include "recipes.inc"  // written by CMakeLists.txt
});

}  // namespace

std::span<const Recipe> recipes() { return kRecipes; }

}  // namespace heddle::train
