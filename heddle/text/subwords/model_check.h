// Checks the structure of a SentencePiece .model file before the library sees it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

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

/// Checks a precompiled character map (size of the trie, double array, replacement strings):
/// every transition and value lies inside, there is no cycle, at most 32 rules match one prefix,
/// and replacements are short valid UTF-8. Returns what is wrong, empty if nothing is.
/// Source: Darts-clone's double array; SentencePiece's Normalizer.
std::string charsmap_fault(std::string_view charsmap);

}  // namespace heddle
