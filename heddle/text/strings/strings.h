// Classes of characters as Hugging Face's `tokenizers` draws them, by ICU; small operations on
// texts, and what one must be before a tokenizer sees it.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

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

/// Bytes that a tokenizer may make of a text of so many before it splits it: far more than any does
/// that is not made to fill memory, and less than 2 GiB, which ICU counts.
size_t most_bytes(size_t text);
/// Errors: data if `bytes`, to which a text has grown, are more than `most`.
void check_growth(size_t bytes, size_t most);

/// The longest text, in bytes, that is given to a model as one: 1 MiB. Tokenizers take
/// many bytes of memory for a byte of text (2026-11: SentencePiece 65 to 225, byte-level BPE 7 to
/// 33, unigrams of a tokenizer.json up to 48), and a model reads a few thousand tokens at most.
/// Documents of files that are read in windows or blocks (training, `eval --text`) are not bound by
/// it.
inline constexpr size_t kLongestText = size_t{1} << 20;

/// `where` ("line 3", "the text") opens the message. Errors: data if the text is longer than
/// kLongestText, or not UTF-8.
void check_text(std::string_view text, const std::string& where);

/// The lines of a text without their ends, "\n" or "\r\n".
std::vector<std::string_view> lines_of(std::string_view text);

/// The text with each occurrence of `from`, which is not empty, exchanged for `to`; from the left,
/// without overlaps.
std::string replace_all(std::string_view text, std::string_view from, std::string_view to);

/// As it may stand in HTML: &, < and > as entities, and, as in an attribute it must, quotes too.
std::string html_escaped(std::string_view text, bool escapes_quotes = true);

/// The parts between the commas, empty ones left out.
std::vector<std::string> split_at_commas(std::string_view text);
/// The words of a text, between white space of ASCII.
std::vector<std::string> split_at_spaces(std::string_view text);

/// The bytes as UTF-8, with U+FFFD for each longest part that could begin a character but does not,
/// and for each byte that could begin none.
/// Source: The Unicode Standard 15.0, section 3.9, "U+FFFD Substitution of Maximal Subparts".
std::string replace_invalid_utf8(std::string_view bytes);

/// The byte of a token like "<0x0A>".
std::optional<char> byte_of_token(std::string_view token);

/// Bytes at the end of a text that a mark begins with, the most there are; never the whole mark.
size_t begun_at_end(std::string_view text, std::string_view mark);

/// Where the last character of a text, which is not empty, begins.
size_t last_character(std::string_view text);
/// Bytes of white space (Unicode's) at the front of a text, which is UTF-8, and at its end.
size_t leading_space(std::string_view text);
size_t trailing_space(std::string_view text);
/// The text without them.
std::string_view trimmed(std::string_view text);

/// Lower case of each character whatever stands beside it (one, of U+0130 two); the text is UTF-8.
std::string lower_case(std::string_view text);

/// A character of the last private plane, U+100000 to U+10FFFD, that is neither in the text, which
/// is UTF-8, nor among `taken`, as UTF-8: four bytes; empty if there is none.
std::string unused_character(std::string_view text, std::span<const char32_t> taken);

/// Takes away the spaces that splitting off punctuation and English contractions leaves: " ." is
/// ".", " n't" is "n't", and so on. Source: `clean_up_tokenization` of Hugging Face's transformers.
std::string clean_up_spaces(std::string text);

/// The visible characters that byte-level BPE writes for bytes: those of Latin-1 that are visible
/// stand for themselves, the other 68 bytes are U+0100 and on in order (a space is U+0120, "Ġ").
/// Source: Radford et al. 2019, their code (bytes_to_unicode).
void append_byte_letters(std::string_view bytes, std::string& text);

/// The bytes of such characters; nothing if another one is among them.
std::optional<std::string> bytes_of_letters(std::string_view text);

/// The bytes of a text in base 64 (RFC 4648, with '=' at the end; what is cut there is zero).
/// Errors: data, with `source` and the offset, if it is none.
std::string base64_bytes(std::string_view text, const std::string& source);
/// The bytes in base 64, with '=' at the end.
std::string base64_text(std::string_view bytes);

}  // namespace heddle
