// The known name closest to one that was mistyped, for error messages.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace heddle {

/// The known name with the fewest insertions, deletions, substitutions and swaps of neighbours away
/// from `name` (optimal string alignment), the first such on a tie; "" if even that one needs more
/// edits than a third of the longer name, or 2 for names of fewer than six characters.
std::string nearest_name(std::string_view name, const std::vector<std::string>& known);

}  // namespace heddle
