// The members of a JSON object one at a time, so that a large one is never in memory as a whole.
#pragma once

#include <string>
#include <string_view>

#include "heddle/base/json/json.h"

namespace heddle {

/// Walks over the members of an object in their order. `text` is the object and nothing else but
/// white space, and must outlive this; `source` (a path) opens messages.
class JsonMembers {
 public:
  JsonMembers(std::string_view text, std::string source);

  /// The next member: its name, and the text of its value, for Json::parse(). False
  /// after the last. Errors: data, with the column (bytes from 1), for what is no JSON.
  bool next(std::string& name, std::string_view& value);

 private:
  char skip_space();
  void expect(char c);
  std::string_view string_text();
  std::string_view value_text();
  [[noreturn]] void fail_here(const char* needed) const;

  std::string_view text_;
  std::string source_;
  size_t at_ = 0;
  bool is_first_ = true;
};

}  // namespace heddle
