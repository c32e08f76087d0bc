// Reading a tokenizer from a folder as Hugging Face lays it out.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "heddle/text/tokenizer.h"

namespace heddle {

/// The tokenizer of a folder; nothing if none of its files is there. Errors: see Tokenizer::load().
std::optional<Tokenizer> find_tokenizer(const std::string& folder);

/// Those of a translator's folder.
struct TokenizerPair {
  Tokenizer source;
  std::optional<Tokenizer> target = {};  ///< absent: it is the source's
};
std::optional<TokenizerPair> find_tokenizer_pair(const std::string& folder);

/// See Tokenizer::load().
Tokenizer load_tokenizer_folder(const std::string& folder);

/// From one .json, .txt or .bpe file of such a folder; the others that belong to it are read too.
Tokenizer load_tokenizer_file(const std::string& path);

/// From a tokenizer.json or a vocab.txt that stands nowhere.
Tokenizer tokenizer_of_file(TokenizerFile file);

/// What a tokenizer's files are known by: of one file its checksum, else one over all.
std::string fingerprint_of(const std::vector<TokenizerFile>& files);

}  // namespace heddle
