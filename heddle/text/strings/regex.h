// Regular expressions over UTF-8, by ICU.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace heddle {

/// An expression, read once; may be used from several threads.
class Regex {
 public:
  /// Errors: data, with `source` and the place, if ICU cannot read the expression.
  Regex(const std::string& pattern, const std::string& source);
  ~Regex();

  /// Begin and end, in bytes, of the matches from left to right, without overlaps; none is empty
  /// where the one before it ends. Words are those of `onig`, the library of `tokenizers`.
  /// Errors: data if all matches together take more steps than a text of this length is given, or
  /// one too much memory.
  std::vector<std::pair<size_t, size_t>> find_all(std::string_view text) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace heddle
