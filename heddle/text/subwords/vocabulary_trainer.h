// Vocabularies of our own making: characters, and WordPiece as BERT has it.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "heddle/text/tokenizer.h"

namespace heddle {

/// A token for each character of the texts, in the order of code points from id 0: byte pair
/// encoding without a merge, so that Hugging Face's tokenizers reads its tokenizer.json too.
/// Errors: data if there is no character.
Tokenizer character_tokenizer(std::span<const std::string> texts);

/// [PAD] [UNK] [CLS] [SEP] [MASK], the characters of the texts as BERT's normalisation leaves them
/// (lower case, no accents), first in a word and inside of one ("##e"), and then the tokens of
/// which each in turn joins the two neighbours that stand together most often (Sennrich et al.
/// 2016), up to `vocab_size` tokens, or fewer if no two come twice: a vocab.txt. Ties go to the
/// pair whose tokens have the lowest ids. Errors: data if the characters alone are more.
Tokenizer train_word_pieces(std::span<const std::string> texts, int64_t vocab_size);

/// A tokenizer that takes the words between spaces as they stand in the list, in its order, behind
/// <pad> 0, <unk> 1, <s> 2 and </s> 3; a word that is not in it is <unk>. It is a SentencePiece
/// model of type WORD, so it is kept and read like any other. The same list gives the same bytes.
/// Errors: data for an empty list, or a word that is empty, comes twice, holds a space or U+2581,
/// is not UTF-8 or is a special token's name.
Tokenizer word_list_tokenizer(std::span<const std::string> words);

}  // namespace heddle
