// Base 64, as tokenizer.json writes character maps and pages their numbers.
#pragma once

#include <string>
#include <string_view>

namespace heddle {

/// The bytes of a text in base 64 (RFC 4648, with '=' at the end; what is cut there is zero).
/// Errors: data, with `source` and the offset, if it is none.
std::string base64_bytes(std::string_view text, const std::string& source);
/// The bytes in base 64, with '=' at the end.
std::string base64_text(std::string_view bytes);

}  // namespace heddle
