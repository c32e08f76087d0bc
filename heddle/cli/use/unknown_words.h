// Saying that a translator meets words which were not in its training.
#pragma once

#include <set>
#include <span>
#include <string>

#include "heddle/infer/loading/loaded_model.h"
#include "heddle/text/known_words.h"

namespace heddle::cli {

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
