// A vocabulary of plain words from a list.
#pragma once

#include <span>
#include <string>

#include "heddle/text/tokenizer.h"

namespace heddle {

/// A tokenizer that takes the words between spaces as they stand in the list, in its order, behind
/// <pad> 0, <unk> 1, <s> 2 and </s> 3; a word that is not in it is <unk>. It is a SentencePiece
/// model of type WORD, so it is kept and read like any other. The same list gives the same bytes.
/// Errors: data for an empty list, or a word that is empty, comes twice, holds a space or U+2581,
/// is not UTF-8 or is a special token's name.
Tokenizer word_list_tokenizer(std::span<const std::string> words);

}  // namespace heddle
