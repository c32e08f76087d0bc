// Cases by ICU; splitting and replacing as Python documents them.
#include "heddle/text/chat/jinja_texts.h"

#include <unicode/locid.h>
#include <unicode/uchar.h>
#include <unicode/unistr.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>

#include "heddle/base/error.h"
#include "heddle/base/utf8.h"
#include "heddle/text/chat/jinja_functions.h"
#include "heddle/text/strings/strings.h"

namespace heddle {
namespace {

std::string upper_case(std::string_view text) {
  std::string result;
  icu::UnicodeString::fromUTF8(icu::StringPiece(text.data(), static_cast<int32_t>(text.size())))
      .toUpper(icu::Locale::getRoot())
      .toUTF8String(result);
  return result;
}

std::string lower(std::string_view text) {
  std::string result;
  icu::UnicodeString::fromUTF8(icu::StringPiece(text.data(), static_cast<int32_t>(text.size())))
      .toLower(icu::Locale::getRoot())
      .toUTF8String(result);
  return result;
}

// The first character in title case, the rest in small letters.
std::string capitalized(std::string_view text) {
  if (text.empty()) return "";
  const size_t first = utf8_length(text);
  std::string result;
  icu::UnicodeString::fromUTF8(icu::StringPiece(text.data(), static_cast<int32_t>(first)))
      .toTitle(nullptr, icu::Locale::getRoot())
      .toUTF8String(result);
  return result + lower(text.substr(first));
}

bool is_cased(char32_t c) { return u_hasBinaryProperty(static_cast<UChar32>(c), UCHAR_CASED) != 0; }

}  // namespace

std::string jinja_stripped(std::string_view text, std::string_view which, bool begin, bool end) {
  if (which.empty()) {
    if (begin) text.remove_prefix(leading_space(text));
    if (end) text.remove_suffix(trailing_space(text));
    return std::string(text);
  }
  const auto is_one = [&](std::string_view c) { return which.find(c) != std::string_view::npos; };
  while (begin && !text.empty() && is_one(text.substr(0, utf8_length(text)))) {
    text.remove_prefix(utf8_length(text));
  }
  while (end && !text.empty() && is_one(text.substr(last_character(text)))) {
    text.remove_suffix(text.size() - last_character(text));
  }
  return std::string(text);
}

size_t jinja_find(std::string_view text, std::string_view part, size_t from) {
  if (from > text.size()) return text.npos;
  const void* at = ::memmem(text.data() + from, text.size() - from, part.data(), part.size());
  return at == nullptr ? text.npos
                       : static_cast<size_t>(static_cast<const char*>(at) - text.data());
}

size_t jinja_find_last(std::string_view text, std::string_view part) {
  const std::string reversed(text.rbegin(), text.rend());
  const size_t at = jinja_find(reversed, std::string(part.rbegin(), part.rend()));
  return at == text.npos ? at : text.size() - part.size() - at;
}

std::vector<std::string> jinja_split(std::string_view text, const std::string& sign, int64_t most,
                                     bool from_right, JinjaBudget& budget) {
  std::vector<std::string> parts;
  const auto add = [&](std::string_view part) {
    budget.spend_bytes(32 + part.size());
    parts.emplace_back(part);
  };
  const auto is_full = [&] { return most >= 0 && std::ssize(parts) >= most; };
  if (sign.empty()) {
    const auto trim_begin = [&] { text.remove_prefix(leading_space(text)); };
    const auto trim_end = [&] { text.remove_suffix(trailing_space(text)); };
    for (from_right ? trim_end() : trim_begin(); !text.empty();
         from_right ? trim_end() : trim_begin()) {
      if (is_full()) {
        add(text);
        break;
      }
      size_t at = from_right ? text.size() : 0;
      if (from_right) {
        while (at > 0 && trailing_space(text.substr(0, at)) == 0) {
          at = last_character(text.substr(0, at));
        }
        add(text.substr(at));
        text = text.substr(0, at);
      } else {
        while (at < text.size() && leading_space(text.substr(at, 4)) == 0) {
          at += utf8_length(text.substr(at));
        }
        add(text.substr(0, at));
        text.remove_prefix(at);
      }
    }
  } else if (from_right) {  // backwards, byte by byte
    const std::string text_back(text.rbegin(), text.rend());
    parts = jinja_split(text_back, std::string(sign.rbegin(), sign.rend()), most, false, budget);
    for (std::string& part : parts) std::ranges::reverse(part);
  } else {
    while (!is_full()) {
      const size_t at = jinja_find(text, sign);
      if (at == std::string_view::npos) break;
      add(text.substr(0, at));
      text.remove_prefix(at + sign.size());
    }
    add(text);
  }
  if (from_right) std::ranges::reverse(parts);
  return parts;
}

std::vector<std::string> jinja_lines(std::string_view text, bool keeps_ends, JinjaBudget& budget) {
  const auto ends_line = [](char32_t c) {
    return (c >= '\n' && c <= '\r') || (c >= 0x1C && c <= 0x1E) || c == 0x85 || c == 0x2028 ||
           c == 0x2029;
  };
  std::vector<std::string> lines;
  size_t begin = 0, end = 0;  // of a line
  for (size_t at = 0; at < text.size(); end = at) {
    const char32_t c = next_code_point(text, at);
    if (!ends_line(c)) continue;
    if (c == '\r' && text.substr(at).starts_with('\n')) ++at;
    budget.spend_bytes(32 + at - begin);
    lines.emplace_back(text.substr(begin, (keeps_ends ? at : end) - begin));
    begin = at;
  }
  if (begin < text.size()) lines.emplace_back(text.substr(begin));
  return lines;
}

std::string jinja_replaced(std::string_view text, const std::string& from, const std::string& to,
                           int64_t most, JinjaBudget& budget) {
  std::string result;
  size_t done = 0;
  for (int64_t n = 0; most < 0 || n < most; ++n) {
    size_t at = done;
    if (from.empty()) {  // before each character, and at the end
      if (n > 0 && done >= text.size()) break;
      at = n == 0 ? 0 : done + utf8_length(text.substr(done));
    } else {
      at = jinja_find(text, from, done);
      if (at == std::string_view::npos) break;
    }
    budget.spend_bytes(to.size() + 1);
    result += text.substr(done, at - done);
    result += to;
    done = at + from.size();
  }
  return result += text.substr(done);
}

std::string jinja_cased(const std::string& how, const std::string& text) {
  if (how == "upper") return upper_case(text);
  if (how == "lower") return lower(text);
  if (how == "capitalize") return capitalized(text);
  check(how == "title", ErrorKind::internal, "a text has no method {}", how);
  std::string result;
  for (size_t at = 0; at < text.size();) {  // each run of cased characters
    const size_t begin = at;
    if (!is_cased(next_code_point(text, at))) {
      result += text.substr(begin, at - begin);
      continue;
    }
    for (size_t end = at; end < text.size() && is_cased(next_code_point(text, end));) at = end;
    result += capitalized(std::string_view(text).substr(begin, at - begin));
  }
  return result;
}

std::string jinja_title(const std::string& text) {
  std::string result;
  constexpr std::string_view kBetween = "- \t\n\r\f\v({[<";
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find_first_of(kBetween, at), text.size());
    const std::string_view word = std::string_view(text).substr(at, end - at);
    const size_t first = utf8_length(word);
    result += upper_case(word.substr(0, first)) + lower(word.substr(first));
    const size_t next = std::min(text.find_first_not_of(kBetween, end), text.size());
    result += text.substr(end, next - end);
    at = next;
  }
  return result;
}

bool jinja_is(const std::string& what, const std::string& text) {
  bool has_cased = false;
  for (size_t at = 0; at < text.size();) {
    const char32_t c = next_code_point(text, at);
    const auto code = static_cast<UChar32>(c);
    if (what == "isspace" && !is_white_space(c)) return false;
    if (what == "isdigit" && u_isdigit(code) == 0) return false;
    if (what == "isalpha" && !is_letter(c)) return false;
    if (what == "isalnum" && !is_letter(c) && !is_number(c)) return false;
    if (what == "isupper" && is_cased(c) && u_isupper(code) == 0) return false;
    if (what == "islower" && is_cased(c) && u_islower(code) == 0) return false;
    has_cased = has_cased || is_cased(c);
  }
  return what == "isupper" || what == "islower" ? has_cased : !text.empty();
}

namespace {

// What %d prints.
std::string whole_number(const JinjaValue& value) {
  if (!value.is_float()) return fmt::format("{}", value.integer("%d"));
  const double number = value.number("%d");
  check(std::abs(number) < 9.2e18, ErrorKind::data, "%d of a number beyond 64 bits");
  return fmt::format("{}", static_cast<int64_t>(number));
}

}  // namespace

std::string jinja_format(const std::string& form, const std::vector<JinjaValue>& values,
                         JinjaBudget& budget) {
  std::string result;
  size_t next = 0;
  for (size_t i = 0; i < form.size(); ++i) {
    if (form[i] != '%') {
      result += form[i];
      continue;
    }
    const char kind = ++i < form.size() ? form[i] : ' ';
    if (kind == '%') {
      result += '%';
      continue;
    }
    check(kind == 's' || kind == 'd' || kind == 'i', ErrorKind::data,
          "'%{}' is not there in formats; %s, %d and %% are", kind);
    check(next < values.size(), ErrorKind::data, "there are more formats than values");
    const JinjaValue& value = values[next++];
    const std::string text = kind == 's' ? jinja_text(value, budget) : whole_number(value);
    budget.spend_bytes(text.size());
    result += text;
  }
  check(next == values.size(), ErrorKind::data, "there are more values than formats");
  return result;
}

std::string jinja_braced(const std::string& form, const std::vector<JinjaValue>& values,
                         const std::vector<std::pair<std::string, JinjaValue>>& named,
                         JinjaBudget& budget) {
  std::string result;
  size_t next = 0;
  for (size_t i = 0; i < form.size(); ++i) {
    const char c = form[i];
    if ((c == '{' || c == '}') && i + 1 < form.size() && form[i + 1] == c) {
      result += c, ++i;
      continue;
    }
    check(c != '}', ErrorKind::data, "format: a '}}' that has no beginning");
    if (c != '{') {
      result += c;
      continue;
    }
    const size_t end = form.find('}', i);
    check(end != std::string::npos, ErrorKind::data, "format: a '{{' that has no end");
    const std::string name = form.substr(i + 1, end - i - 1);
    size_t number = next;
    const auto [rest, error] = std::from_chars(name.data(), name.data() + name.size(), number);
    const JinjaValue* value = nullptr;
    if (name.empty() || (error == std::errc() && rest == name.data() + name.size())) {
      if (name.empty()) ++next;
      if (number < values.size()) value = &values[number];
    }
    for (const auto& [known, one] : named) {
      if (known == name) value = &one;
    }
    check(value != nullptr, ErrorKind::data, "format: there is no value for '{{{}}}'", name);
    const std::string text = jinja_text(*value, budget);
    budget.spend_bytes(text.size());
    result += text;
    i = end;
  }
  return result;
}

}  // namespace heddle
