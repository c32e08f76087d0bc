// Reading a tokenizer from a folder as Hugging Face lays it out.
#pragma once

#include <string>

#include "heddle/text/tokenizer.h"

namespace heddle {

/// See Tokenizer::load().
Tokenizer load_tokenizer_folder(const std::string& folder);

/// From one .json, .txt or .bpe file of such a folder; the others that belong to it are read too.
Tokenizer load_tokenizer_file(const std::string& path);

}  // namespace heddle
