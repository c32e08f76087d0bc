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

}  // namespace heddle
