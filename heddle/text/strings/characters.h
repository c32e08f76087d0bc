// Classes of characters as Hugging Face's `tokenizers` draws them, by ICU; letters for bytes.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace heddle {

/// The property White_Space.
bool is_white_space(char32_t c);
/// Letters \p{L}, numbers \p{N}.
bool is_letter(char32_t c);
bool is_number(char32_t c);
/// \w: alphabetic, marks, decimal digits, connecting punctuation, the two joiners.
bool is_word_character(char32_t c);
/// ASCII punctuation and symbols, and \p{P}, as Unicode 8.0 has it (so does `tokenizers`).
bool is_punctuation(char32_t c);
/// Control, format and private characters of Unicode 8.0, without tab and line ends.
bool is_control(char32_t c);
/// \p{Mn} of Unicode 8.0: accents once they are split off.
bool is_nonspacing_mark(char32_t c);
/// \p{M} of Unicode 9.0.
bool is_combining_mark(char32_t c);
/// Chinese characters, also those in Japanese and Korean text, but no kana and no hangul.
/// Source: Devlin et al. 2018, their code, with the range U+2B820–2B91F missing as in `tokenizers`.
bool is_chinese(char32_t c);

void append_utf8(char32_t c, std::string& text);
/// Lower case of one character whatever stands beside it (one, of U+0130 two).
void append_lower_case(char32_t c, std::string& text);

/// The visible characters that byte-level BPE writes for bytes: those of Latin-1 that are visible
/// stand for themselves, the other 68 bytes are U+0100 and on in order (a space is U+0120, "Ġ").
/// Source: Radford et al. 2019, their code (bytes_to_unicode).
void append_byte_letters(std::string_view bytes, std::string& text);

/// The bytes of such characters; nothing if another one is among them.
std::optional<std::string> bytes_of_letters(std::string_view text);

}  // namespace heddle
