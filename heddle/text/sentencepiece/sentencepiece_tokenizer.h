// Tokenizers that are a SentencePiece model, alone, with what its family puts around texts, or with
// a vocab.json.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "heddle/text/pipeline/special_tokens.h"
#include "heddle/text/tokenizer.h"

namespace sentencepiece {
class SentencePieceProcessor;
}

namespace heddle {

/// What the check learned about a model.
struct ModelFacts {
  enum Type { unigram = 1, bpe, word, character };
  Type type = unigram;
  int64_t pieces = 0;
  bool has_byte_fallback = false;
  bool has_user_symbols = false;  ///< pieces that are found before all others
  bool has_inner_spaces = false;  ///< a piece has U+2581 behind its first character
  bool has_denormalizer = false;
  // Of the normalizer: its map, and what becomes of spaces.
  std::string character_map;
  bool adds_space = true, removes_spaces = true, escapes_spaces = true;
  std::string unk_surface = " \xE2\x81\x87 ";  ///< what decoding makes of an unknown piece
  /// Text survives normalisation unchanged: no character map, spaces kept, space written U+2581.
  bool is_lossless = false;
  /// Code points of U+100000 and above that occur in pieces, sorted (see Tokenizer::encode).
  std::vector<char32_t> private_code_points;
};

/// Walks the protobuf of a SentencePiece model: field types and bounds, number and size of pieces,
/// valid UTF-8, no empty or repeated piece, finite scores, known types, character maps that lead
/// nowhere outside themselves. SentencePiece 0.1.97 trusts much of this and reads out of bounds
/// where it does not hold. `path` is only for the message.
/// Errors: data, with path and byte.
/// Source: sentencepiece_model.proto of SentencePiece; the protocol buffers wire format.
ModelFacts check_sentencepiece_model(std::string_view bytes, const std::string& path);

/// Tokenizer::from_bytes() of a file of at most 256 MiB.
Tokenizer load_sentencepiece(const std::string& path);

/// Has the library read a model, once it is checked: its bytes, and fields that count in place of
/// its own. Errors: data, naming path and byte, if it is empty, cut short, altered so that it makes
/// no sense, or refused by SentencePiece.
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

/// The subword model of a tokenizer that is a SentencePiece model alone, with its ids, for the
/// words of normalised texts (U+2581 for a space). Errors: usage for other tokenizers, and for
/// models that tokenizer.json cannot say.
std::unique_ptr<SubwordModel> subwords_of(const Tokenizer& tokenizer);

/// Whether tokenizer_config.json is one of those, so that tokenizer.model counts.
bool is_for_transformers(const HubFiles& files);

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
