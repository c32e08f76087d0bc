// The text of tokens that come one by one: whole characters, up to a stop string.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "heddle/text/tokenizer.h"

namespace heddle {

/// What a continuation says, while it grows. Its text is what the tokens add to the prompt's: a
/// space between the two is kept.
class TextStream {
 public:
  /// prompt: the tokens before; only the last few matter, which the first new one may join.
  /// shows_special: whether special tokens are written by their names
  TextStream(const Tokenizer& tokenizer, std::span<const int32_t> prompt,
             std::vector<std::string> stops = {}, bool shows_special = false);

  /// Takes all tokens so far, which go on from those of the last call. returns: false once the text
  /// has a stop string, wherever the borders of tokens lie; the text ends before it.
  bool read(std::span<const int32_t> tokens);

  /// The text so far; an unfinished character shows as U+FFFD.
  const std::string& text() const { return text_; }
  /// What has become certain since the last call: neither an unfinished character nor what may be
  /// the beginning of a stop string.
  std::string take();
  /// What is left, once no more tokens come.
  std::string take_rest();

 private:
  std::string text_of(std::span<const int32_t> tokens) const;
  void settle(std::span<const int32_t> fresh);
  size_t certain() const;

  const Tokenizer& tokenizer_;
  const DecodeOptions decoding_;
  std::vector<int32_t> before_;
  std::string before_text_;
  std::vector<std::string> stops_;
  std::string text_;
  size_t settled_ = 0, settled_text_ = 0;  ///< tokens, and bytes of text_, that change no more
  size_t taken_ = 0;
  bool is_stopped_ = false;
};

}  // namespace heddle
