// The characters of a text that a tokenizer passes over, since it has no token for them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "heddle/text/tokenizer.h"

namespace heddle {

/// Counts such characters in texts, and takes them out. Tokenizers with a token for what is unknown
/// or with tokens for all bytes drop none; that of `--tokenizer-type char` has neither. A character
/// is dropped if it has no ids as a text of its own, but for a space that is put before texts.
class DroppedCharacters {
 public:
  explicit DroppedCharacters(const Tokenizer& tokenizer);

  /// The text, which is UTF-8, without the characters that are dropped.
  std::string without(std::string_view text);
  /// Counts them alone; costs nothing where the tokenizer drops none.
  void count_in(std::string_view text) {
    if (may_drop_) without(text);
  }

  /// In all texts so far.
  int64_t count() const { return count_; }
  /// The different ones, in the order of the texts; after sort() in that of code points.
  const std::vector<std::string>& different() const { return different_; }
  void sort();
  /// Adds what was counted elsewhere by the same tokenizer.
  void add(int64_t count, std::span<const std::string> different);
  /// "2 characters", and the first few different ones: "'ü', U+0009".
  std::string counted_characters() const;
  std::string examples() const;
  /// False if the tokens of a text do not stand for all the rest of it, character by character:
  /// a tokenizer may change a text (lower case), or know some bytes of a character. `text`, and
  /// without(text).
  bool is_rest_whole(std::string_view text, std::string_view rest) const;

 private:
  bool drops(std::string_view character) const;

  Tokenizer tokenizer_;
  bool may_drop_;
  std::unordered_map<char32_t, bool> is_dropped_;
  std::vector<std::string> different_;
  int64_t count_ = 0;
};

}  // namespace heddle
