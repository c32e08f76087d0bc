// Strings and regular expressions to look for, and what else components of tokenizer.json share.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "heddle/base/json/json.h"

namespace heddle {

/// A string, or a regular expression over UTF-8 by ICU, to look for; read once, may be used from
/// several threads.
class Pattern {
 public:
  /// {"String": "..."} or {"Regex": "..."}. Errors: data for anything else, and, with the place,
  /// for an expression that ICU cannot read, or, by name, not as `onig` does.
  static Pattern read(const Json& json, const std::string& source);

  /// Begin and end, in bytes, of the matches from left to right, without overlaps. Of an expression
  /// none is empty where the one before it ends, and it is read as `onig` does, the library of
  /// `tokenizers` (onig_syntax.h). Errors: data if all matches together take more steps than a text
  /// of this length is given, or one too much memory.
  std::vector<std::pair<size_t, size_t>> find_all(std::string_view text) const;
  /// The text with `content` in place of each match. Errors: data if it grows beyond `most` bytes.
  std::string replace(std::string_view text, std::string_view content, size_t most) const;

 private:
  class Regex;
  std::string literal_;
  std::shared_ptr<const Regex> regex_;  // nullptr: literal_
};

/// The "type" of a component. Errors: data, with `source` in front, if it has none.
const std::string& component_type(const Json& json, const std::string& source);

/// Fails with the name of a component that is not known.
[[noreturn]] void fail_component(const char* what, const std::string& type,
                                 const std::string& known, const std::string& source);

/// The members `list` of a Sequence. Errors: data if there is no such array.
const Json::Array& sequence_of(const Json& json, const char* list, const std::string& source);
/// The same, with those of a Sequence inside another among its own and null left out; `what` they
/// are, and where each stands, for messages.
using PlacedComponent = std::pair<const Json*, std::string>;
std::vector<PlacedComponent> flat_sequence(const Json& json, const char* list,
                                           const std::string& what, const std::string& source);

/// A member, or `otherwise` if it is absent or null. Errors: data if it is of another type.
bool bool_or(const Json& json, const char* key, bool otherwise, const std::string& source);
std::string string_or(const Json& json, const char* key, const std::string& otherwise,
                      const std::string& source);
int64_t int_or(const Json& json, const char* key, int64_t otherwise, const std::string& source);

}  // namespace heddle
