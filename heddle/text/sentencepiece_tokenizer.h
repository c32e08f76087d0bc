// Tokenizers that are a SentencePiece model.
#pragma once

#include <string>

#include "heddle/text/tokenizer.h"

namespace heddle {

/// A SentencePiece model (BPE or unigram) from its bytes; `name` stands for the path in messages.
/// Errors: data, naming path and byte, if it is empty, cut short, altered so that it makes no
/// sense, or refused by SentencePiece.
Tokenizer sentencepiece_tokenizer(std::string bytes, const std::string& name);
/// The same from a file of at most 256 MiB.
Tokenizer load_sentencepiece(const std::string& path);

}  // namespace heddle
