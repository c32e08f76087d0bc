// The members of a JSON object one at a time, so that a large one is never in memory as a whole.
#include "heddle/io/json_members.h"

#include <algorithm>
#include <utility>

#include "heddle/base/error.h"

namespace heddle {

JsonMembers::JsonMembers(std::string_view text, std::string source)
    : text_(text), source_(std::move(source)) {
  expect('{');
}

bool JsonMembers::next(std::string& name, std::string_view& value) {
  if (skip_space() == '}') {
    ++at_;
    if (skip_space() != '\0' || at_ < text_.size()) fail_here("the end");
    return false;
  }
  if (!is_first_) expect(',');
  is_first_ = false;
  skip_space();
  name = Json::parse(string_text(), source_).as_string(source_);
  expect(':');
  skip_space();
  value = value_text();
  if (value.empty()) fail_here("a value");
  return true;
}

// The character that is next, '\0' at the end.
char JsonMembers::skip_space() {
  at_ = std::min(text_.find_first_not_of(" \t\r\n", at_), text_.size());
  return at_ < text_.size() ? text_[at_] : '\0';
}

void JsonMembers::expect(char c) {
  if (skip_space() != c) fail_here(c == '{' ? "'{'" : c == ',' ? "',' or '}'" : "':'");
  ++at_;
}

// A string with its quotes, as far as they tell: what is between them is not looked at.
std::string_view JsonMembers::string_text() {
  const size_t begin = at_;
  if (at_ == text_.size() || text_[at_] != '"') fail_here("a name in quotes");
  for (++at_; at_ < text_.size() && text_[at_] != '"'; ++at_) at_ += text_[at_] == '\\';
  if (at_ >= text_.size()) fail_here("the end of a string");
  return text_.substr(begin, ++at_ - begin);
}

// Up to the ',' or '}' that is not inside.
std::string_view JsonMembers::value_text() {
  const size_t begin = at_;
  for (int64_t depth = 0; at_ < text_.size();) {
    const char c = text_[at_];
    if (c == '"') {
      string_text();
      continue;
    }
    if (depth == 0 && (c == ',' || c == '}' || c == ']')) break;
    depth += (c == '{' || c == '[') - (c == '}' || c == ']');
    ++at_;
  }
  return text_.substr(begin, at_ - begin);
}

void JsonMembers::fail_here(const char* needed) const {
  fail(ErrorKind::data, "{}: not valid JSON at column {}{}: {} is needed", source_,
       std::min(at_, text_.size()) + 1, at_ >= text_.size() ? ", where the text ends" : "", needed);
}

}  // namespace heddle
