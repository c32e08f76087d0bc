// Characters that HTML writes by name or number.
#pragma once

#include <string>
#include <string_view>

namespace heddle {

/// The text with the character in place of each "&NAME;" (the names of HTML 4, and apos), "&#65;"
/// and "&#x41;"; what is none of these, or no character, stays as it is.
std::string without_entities(std::string_view text);

}  // namespace heddle
