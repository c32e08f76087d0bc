// Characters that HTML writes by name or number.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace heddle {

/// The character of a name of HTML 4, of "apos", "#65" or "#x41"; none of control characters.
std::optional<uint32_t> entity_character(std::string_view name);
/// The text with the character in place of each "&NAME;" (the names of HTML 4, and apos), "&#65;"
/// and "&#x41;"; what is none of these, or no character, stays as it is.
std::string without_entities(std::string_view text);

}  // namespace heddle
