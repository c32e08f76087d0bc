// Marian's and M2M-100's tokenizers: SentencePiece finds the tokens of a text, vocab.json has their
// ids.
#pragma once

#include <string>
#include <vector>

#include "heddle/text/pipeline/special_tokens.h"
#include "heddle/text/tokenizer.h"

namespace heddle {

// The files of a folder: a SentencePiece model for each language, and the ids of their tokens, of
// both languages or with those of the target in a file of its own ("separate_vocabs" of
// tokenizer_config.json).
inline constexpr const char* kMarianSourceName = "source.spm";
inline constexpr const char* kMarianTargetName = "target.spm";
inline constexpr const char* kMarianVocabName = "vocab.json";
inline constexpr const char* kMarianTargetVocabName = "target_vocab.json";

enum class MarianSide : uint8_t { source, target };

/// That of M2M-100: sentencepiece.bpe.model and vocab.json, behind which the tokens of languages
/// stand, "__fr__". Errors: as below.
/// Source: transformers 5.23, models/m2m_100/tokenization_m2m_100.py.
Tokenizer load_m2m_tokenizer(HubFiles files);

/// The tokenizer of one language. A text, and what follows a special token in it, may begin with
/// the name of a target language, ">>fr<<", which is a token. Tokens that the vocabulary lacks are
/// unk_id(); decoding leaves out unk_id(), as transformers does.
/// Errors: data, naming the file, for anything missing or without sense.
/// Source: transformers 5.23, models/marian/tokenization_marian.py.
Tokenizer load_marian_tokenizer(const std::string& folder, MarianSide side);

/// The files of a folder that two SentencePiece tokenizers make, or one for both languages (target
/// null). max_length: model_max_length, in tokens
std::vector<TokenizerFile> marian_tokenizer_files(const Tokenizer& source, const Tokenizer* target,
                                                  int64_t max_length);

}  // namespace heddle
