// From tokens back to text: the decoders of tokenizer.json.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "heddle/base/json/json.h"

namespace heddle {

/// Changes the tokens, which are then joined without anything between them.
using TokenDecoder = std::function<void(std::vector<std::string>& tokens)>;

/// Bytes of byte-level BPE; U+FFFD where they form no character.
TokenDecoder make_byte_level_decoder();
/// Spaces between tokens that do not begin with the prefix, which is taken away.
TokenDecoder make_wordpiece_decoder(std::string prefix, bool cleanup);

/// From the "decoder" of a tokenizer.json: ByteLevel, WordPiece, Metaspace, BPEDecoder,
/// ByteFallback, Fuse, Strip, Replace and Sequence of these; none for null, which joins the
/// tokens with spaces. Errors: data, naming what is unknown or wrong.
TokenDecoder read_token_decoder(const Json& json, const std::string& source);

}  // namespace heddle
