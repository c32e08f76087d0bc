// Small operations on texts that several tokenizer components need.
#pragma once

#include <string>
#include <string_view>

namespace heddle {

/// The text with each occurrence of `from`, which is not empty, exchanged for `to`; from the left,
/// without overlaps.
std::string replace_all(std::string_view text, std::string_view from, std::string_view to);

/// The bytes as UTF-8, with U+FFFD for each longest part that could begin a character but does not,
/// and for each byte that could begin none.
/// Source: The Unicode Standard 15.0, section 3.9, "U+FFFD Substitution of Maximal Subparts".
std::string replace_invalid_utf8(std::string_view bytes);

/// Lower case of each character alone (the text is UTF-8).
std::string lower_case(std::string_view text);

/// Takes away the spaces that splitting off punctuation and English contractions leaves: " ." is
/// ".", " n't" is "n't", and so on. Source: `clean_up_tokenization` of Hugging Face's transformers.
std::string clean_up_spaces(std::string text);

}  // namespace heddle
