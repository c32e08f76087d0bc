// Tokenizers that are a SentencePiece model.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "heddle/text/pipeline/special_tokens.h"
#include "heddle/text/subwords/model_check.h"
#include "heddle/text/tokenizer.h"

namespace sentencepiece {
class SentencePieceProcessor;
}

namespace heddle {

/// A SentencePiece model (BPE or unigram) from its bytes; `name` stands for the path in messages.
/// Errors: data, naming path and byte, if it is empty, cut short, altered so that it makes no
/// sense, or refused by SentencePiece.
Tokenizer sentencepiece_tokenizer(std::string bytes, const std::string& name);
/// The same from a file of at most 256 MiB.
Tokenizer load_sentencepiece(const std::string& path);

/// Has the library read a model, once it is checked: its bytes, and fields that count in place of
/// its own. Errors: as above.
ModelFacts load_processor(std::string_view bytes, const std::string& name,
                          sentencepiece::SentencePieceProcessor& processor,
                          std::string_view fields = {});

/// Raises SentencePiece's log level so that only fatal messages are printed. Beside the noise,
/// 0.1.97's log lines read the first of an empty list while training on a tiny corpus.
void silence_sentencepiece();

/// A SentencePiece model of a folder with the special tokens of its family (T5, XLNet, Llama,
/// Mistral, Mixtral, mBART, mBART-50), by tokenizer_class or model_type; nothing if the family is
/// none of these. Errors: data, naming the file, for a broken model or one without the family's
/// special tokens.
std::optional<PipelineDescription> describe_sentencepiece(HubFiles& files, const std::string& name);

}  // namespace heddle
