// Warnings about the input: characters that a tokenizer has no token for, which are not read, and
// words that were not in a translator's training.
#pragma once

#include <optional>
#include <set>
#include <span>
#include <string>

#include "heddle/infer/loading/loaded_model.h"
#include "heddle/text/dropped_characters.h"
#include "heddle/text/known_words.h"

namespace heddle::cli {

/// Warns of characters of a file, if any were dropped: what was done of them is in `result`.
void warn_of_dropped(const DroppedCharacters& dropped, const std::string& path,
                     const char* result = "all figures are of the rest");

/// The same at the end of a command's input.
void warn_of_dropped_input(const char* command, const DroppedCharacters& dropped);

/// Looks at texts before they are encoded.
class DroppedWarning {
 public:
  DroppedWarning(const char* command, const Tokenizer& tokenizer)
      : command_(command), dropped_(tokenizer) {}

  /// Names the characters of the text, UTF-8, that are dropped, the first time that there are any.
  /// `where` ("line 3") opens messages.
  /// Errors: data, naming them, if the text has no others.
  void look_at(const std::string& text, const std::string& where);
  /// Says how many there were in all, if more came.
  void report() const;

 private:
  const char* command_;
  DroppedCharacters dropped_;
  int64_t said_ = 0;
};

/// Looks at lines that are translated: nobody should take an invented translation for a known one.
class UnknownWords {
 public:
  UnknownWords(const char* command, const LoadedModel& model)
      : command_(command), known_(KnownWords::find(model.path)) {}

  /// Says which words of the lines, UTF-8, were not seen in training, the first time that there are
  /// any.
  void look_at(std::span<const std::string> lines);
  /// Says how many there were in all, if more came.
  void report() const;

 private:
  const char* command_;
  std::optional<KnownWords> known_;
  std::set<std::string> words_;
  size_t said_ = 0;
};

}  // namespace heddle::cli
