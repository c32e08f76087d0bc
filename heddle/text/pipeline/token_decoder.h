// From tokens back to text: the decoders of tokenizer.json.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "heddle/base/json/json.h"

namespace heddle {

class TokenDecoder {
 public:
  virtual ~TokenDecoder() = default;
  /// Changes the tokens, which are then joined without anything between them.
  virtual void operator()(std::vector<std::string>& tokens) const = 0;
};

/// Bytes of byte-level BPE; U+FFFD where they form no character.
std::unique_ptr<TokenDecoder> make_byte_level_decoder();
/// Spaces between tokens that do not begin with the prefix, which is taken away.
std::unique_ptr<TokenDecoder> make_wordpiece_decoder(std::string prefix, bool cleanup);

/// From the "decoder" of a tokenizer.json: ByteLevel, WordPiece, Metaspace, BPEDecoder,
/// ByteFallback, Fuse, Strip, Replace and Sequence of these; nullptr for null, which joins the
/// tokens with spaces. Errors: data, naming what is unknown or wrong.
std::unique_ptr<TokenDecoder> read_token_decoder(const Json& json, const std::string& source);

}  // namespace heddle
