// Words and tokens: which runs of tokens a reader takes for one word, and the tokens of words that
// were split before, as taggers take them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "heddle/text/tokenizer.h"

namespace heddle {

/// A run of tokens [begin, end) that is a word, or punctuation.
struct WordSpan {
  int64_t begin = 0, end = 0;
  bool is_punctuation = false;
};

/// The words of a sentence, in order. A word goes on up to the next space or punctuation; tokens
/// that are only a space belong to none. ids: without special tokens
std::vector<WordSpan> word_spans(const Tokenizer& tokenizer, std::span<const int32_t> ids);

/// Whether there is punctuation and nothing else: of ASCII, without the signs that stand inside
/// words.
bool is_punctuation(std::string_view token);

/// The text of a word, without spaces at its ends.
std::string word_text(const Tokenizer& tokenizer, std::span<const int32_t> ids,
                      const WordSpan& word);

/// A token as it stands in a text, with its spaces: " the", of a special one its name.
std::string token_text(const Tokenizer& tokenizer, int32_t id);

/// The text of a token without its space; of a byte token "<0x2C>" the byte.
std::string bare_token(const std::string& token);

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
