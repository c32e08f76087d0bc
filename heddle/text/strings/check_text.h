// What a text must be before a tokenizer sees it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace heddle {

/// The longest text, in bytes, that is given to a model as one: 1 MiB. Tokenizers take
/// many bytes of memory for a byte of text (2026-11: SentencePiece 65 to 225, byte-level BPE 7 to
/// 33, unigrams of a tokenizer.json up to 48), and a model reads a few thousand tokens at most.
/// Documents of files that are read in windows or blocks (training, `eval --text`) are not bound by
/// it.
inline constexpr size_t kLongestText = size_t{1} << 20;

/// `where` ("line 3", "the text") opens the message. Errors: data if the text is longer than
/// kLongestText, or not UTF-8.
void check_text(std::string_view text, const std::string& where);

}  // namespace heddle
