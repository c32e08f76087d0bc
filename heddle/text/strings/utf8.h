// UTF-8: strict validation and a walk over code points.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace heddle {

/// The offset of the first byte that is not part of well-formed UTF-8, or nothing if all of it is.
/// Refused as the standard asks: overlong forms, surrogates, anything above U+10FFFF, stray
/// continuation bytes, a sequence cut short (its first byte is then the offender).
/// Source: The Unicode Standard 15.0, table 3-7.
std::optional<size_t> first_invalid_utf8(std::string_view text);

/// What stands for a character that is none, or is not whole: U+FFFD.
inline constexpr std::string_view kUnknownCharacter = "\xEF\xBF\xBD";

/// `where` ("FILE", "line 3") opens the message. Errors: data if the text is not UTF-8.
void check_utf8(std::string_view text, const std::string& where);

/// The code point that begins at `at`, and `at` moved behind it. `text` must be valid UTF-8.
char32_t next_code_point(std::string_view text, size_t& at);

}  // namespace heddle
