// SentencePiece models in the form that Hugging Face's transformers reads without a family.
#pragma once

#include <vector>

#include "heddle/text/pipeline/special_tokens.h"
#include "heddle/text/subwords/model_check.h"
#include "heddle/text/tokenizer.h"

namespace sentencepiece {
class SentencePieceProcessor;
}

namespace heddle {

/// The file of a SentencePiece model without a family.
inline constexpr const char* kSentencePieceName = "tokenizer.model";

/// What stands beside tokenizer.model for transformers: a tokenizer.json (byte fallback, character
/// map and spaces as the model has them) and a tokenizer_config.json by which it is read whatever
/// config.json says. heddle reads the model itself. The ids are the same, and the texts of ids that
/// come from texts, but for texts with U+2581, which is a space to transformers, for clusters that
/// a character map replaces in part, where a BPE could join a, aa, a in two ways, and for "</s>" in
/// texts of a unigram model that knows neither sign and no bytes. Of a model
/// that tokenizer.json cannot say (words, symbols of the user, tokens of several words) there is
/// the tokenizer_config.json alone, with a class that only heddle knows.
std::vector<TokenizerFile> files_for_transformers(
    const sentencepiece::SentencePieceProcessor& processor, const ModelFacts& facts);

/// Whether tokenizer_config.json is one of those, so that tokenizer.model counts.
bool is_for_transformers(const HubFiles& files);

}  // namespace heddle
