// Byte-level BPE writes each byte as a visible character.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace heddle {

/// The characters of the bytes: those of Latin-1 that are visible stand for themselves, the other
/// 68 bytes are U+0100 and on in order (a space is U+0120, "Ġ").
/// Source: Radford et al. 2019, their code (bytes_to_unicode).
void append_byte_letters(std::string_view bytes, std::string& text);

/// The bytes of such characters; nothing if another one is among them.
std::optional<std::string> bytes_of_letters(std::string_view text);

}  // namespace heddle
