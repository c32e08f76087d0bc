// Texts whose words were split before, as taggers take them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "heddle/text/tokenizer.h"

namespace heddle {

/// The words of a text, between white space of ASCII.
std::vector<std::string> split_words(std::string_view text);

struct EncodedWords {
  Encoding encoding = {};                ///< with the special ids
  std::vector<int64_t> first_rows = {};  ///< of each word; -1 if it gives no id or was cut off
  bool was_cut = false;
};

/// Words one by one, each as if it were a text, so that the row of its first id is known; ids
/// beyond `longest`, special ones not counted, are cut off. Errors: those of Tokenizer::encode().
EncodedWords encode_words(const Tokenizer& tokenizer, std::span<const std::string> words,
                          int64_t longest);

}  // namespace heddle
