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
  Regex(Regex&&) noexcept;

  /// Begin and end, in bytes, of the matches from left to right, without overlaps.
  /// Errors: data if the expression takes too long or too much memory on this text.
  std::vector<std::pair<size_t, size_t>> find_all(std::string_view text) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace heddle
