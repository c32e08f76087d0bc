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

/// `where` ("FILE", "line 3") opens the message. Errors: data if the text is not UTF-8, or an
/// image.
void check_utf8(std::string_view text, const std::string& where);
/// For bytes that are not text. Errors: data, saying so, if a PNG or JPEG file begins like them.
void check_no_image(std::string_view bytes, const std::string& where);

/// Bytes of the well-formed sequence that a text begins with; 0 if there is none, or no text.
size_t utf8_length(std::string_view text);

/// Whether a byte goes on with a character rather than beginning one.
inline bool is_continuation(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

/// How many characters a text has.
int64_t count_characters(std::string_view text);
/// Where the character behind the first `count` begins; the size of a text that has no more.
size_t end_of_characters(std::string_view text, int64_t count);

/// The first `most` characters of a text, and "…" if there are more.
std::string shortened(const std::string& text, int64_t most);

/// The code point that begins at `at`, and `at` moved behind it. `text` must be valid UTF-8.
char32_t next_code_point(std::string_view text, size_t& at);

}  // namespace heddle
