// Tags of HTML and XML as they are written.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace heddle {

/// White space in markup and between its words.
inline constexpr std::string_view kMarkupSpaces = " \t\r\n\f\v";
inline bool is_markup_space(char c) { return kMarkupSpaces.find(c) != kMarkupSpaces.npos; }

/// Of a tag that begins at `begin`, "<a href=x>", where it ends, behind ">"; npos if it does not
/// before another begins.
size_t end_of_tag(std::string_view text, size_t begin);
/// Of "<A href=x>" and "</A>" "A".
std::string_view tag_name(std::string_view tag);
/// Whether they are the same but for the case of ASCII's letters.
bool is_same_tag_name(std::string_view a, std::string_view b);
/// The value of an attribute as it is written, without quotes; "" if it has none, nothing if the
/// tag does not have the attribute. name: in small letters, in the tag in any case
std::optional<std::string_view> tag_attribute(std::string_view tag, std::string_view name);

}  // namespace heddle
