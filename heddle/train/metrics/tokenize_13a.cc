// Words and characters as sacreBLEU sees them: the 13a tokenizer, Python's white space and lower().
#include "heddle/train/metrics/tokenize_13a.h"

#include <unicode/bytestream.h>
#include <unicode/casemap.h>
#include <unicode/utf8.h>

#include <algorithm>

#include "heddle/base/error.h"
#include "heddle/text/strings/strings.h"

namespace heddle::train {
namespace {

constexpr uint32_t kNotUtf8 = 0x110000;

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_stop(char c) { return c == '.' || c == ','; }

// [\{-\~\[-\` -\&\(-\+\:-\@\/] of mteval: ASCII punctuation but ' , - . and the blank.
bool is_split_off(char c) {
  return (c >= '{' && c <= '~') || (c >= '[' && c <= '`') || (c >= ' ' && c <= '&') ||
         (c >= '(' && c <= '+') || (c >= ':' && c <= '@') || c == '/';
}

// str.isspace() of Python.
bool is_whitespace(uint32_t c) {
  if (c < 0x80) return c == ' ' || (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x1F);
  return c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 ||
         c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

// Calls visit(code point, first byte, byte after the last) for each character.
template <class Visit>
void for_each_character(std::string_view text, const Visit& visit) {
  const auto* bytes = reinterpret_cast<const uint8_t*>(text.data());
  const size_t length = text.size();
  for (size_t i = 0; i < length;) {
    const size_t begin = i;
    UChar32 c = 0;
    U8_NEXT(bytes, i, length, c);
    if (c < 0) {
      i = begin + 1;
      visit(kNotUtf8 + bytes[begin], begin, i);
    } else {
      visit(static_cast<uint32_t>(c), begin, i);
    }
  }
}

std::string_view without_trailing_whitespace(std::string_view text) {
  size_t end = 0;
  for_each_character(text, [&](uint32_t c, size_t, size_t after) {
    if (!is_whitespace(c)) end = after;
  });
  return text.substr(0, end);
}

// Writes `text` to the result with a blank before and after each character that is to stand alone.
std::string split_off_punctuation(std::string_view text) {
  std::string out;
  out.reserve(text.size() * 3 / 2 + 8);
  for (char c : text) {
    if (is_split_off(c)) {
      out.append({' ', c, ' '});
    } else {
      out.push_back(c);
    }
  }
  return out;
}

// Regular expressions of two characters, ([first])([second]), replaced from left to right without
// overlap: the second character of a match begins no other match. Bytes do as well as characters,
// because every class is ASCII or the complement of an ASCII class.
template <class Matches>
std::string replace_pairs(std::string_view text, const Matches& matches, std::string_view before,
                          std::string_view between, std::string_view after) {
  std::string out;
  out.reserve(text.size() * 5 / 4 + 8);
  for (size_t i = 0; i < text.size(); ++i) {
    if (i + 1 == text.size() || !matches(text[i], text[i + 1])) {
      out.push_back(text[i]);
      continue;
    }
    out.append(before).push_back(text[i]);
    out.append(between).push_back(text[++i]);
    out.append(after);
  }
  return out;
}

}  // namespace

std::vector<std::string> tokenize_13a(std::string_view line) {
  std::string text(without_trailing_whitespace(line));
  text = replace_all(text, "<skipped>", "");
  text = replace_all(text, "-\n", "");
  std::replace(text.begin(), text.end(), '\n', ' ');
  text = replace_all(text, "&quot;", "\"");
  text = replace_all(text, "&amp;", "&");
  text = replace_all(text, "&lt;", "<");
  text = replace_all(text, "&gt;", ">");
  text = split_off_punctuation(" " + text + " ");
  const auto stop_not_after_digit = [](char a, char b) { return !is_digit(a) && is_stop(b); };
  const auto stop_not_before_digit = [](char a, char b) { return is_stop(a) && !is_digit(b); };
  const auto dash_after_digit = [](char a, char b) { return is_digit(a) && b == '-'; };
  text = replace_pairs(text, stop_not_after_digit, "", " ", " ");
  text = replace_pairs(text, stop_not_before_digit, " ", " ", "");
  text = replace_pairs(text, dash_after_digit, "", " ", " ");
  const auto words = split_whitespace(text);
  return {words.begin(), words.end()};
}

std::vector<std::string_view> split_whitespace(std::string_view text) {
  std::vector<std::string_view> words;
  size_t word_begin = 0;
  const auto end_word = [&](size_t end) {
    if (end > word_begin) words.push_back(text.substr(word_begin, end - word_begin));
  };
  for_each_character(text, [&](uint32_t c, size_t begin, size_t after) {
    if (!is_whitespace(c)) return;
    end_word(begin);
    word_begin = after;
  });
  end_word(text.size());
  return words;
}

std::vector<uint32_t> characters_without_whitespace(std::string_view text) {
  std::vector<uint32_t> characters;
  characters.reserve(text.size());
  for_each_character(text, [&](uint32_t c, size_t, size_t) {
    if (!is_whitespace(c)) characters.push_back(c);
  });
  return characters;
}

std::string lower_case(std::string_view text) {
  check(text.size() <= INT32_MAX, ErrorKind::data,
        "lower_case: a text of {} bytes; at most 2 GiB can be lower-cased", text.size());
  std::string lower;
  icu::StringByteSink<std::string> sink(&lower, static_cast<int32_t>(text.size()));
  UErrorCode status = U_ZERO_ERROR;
  icu::CaseMap::utf8ToLower("", 0, icu::StringPiece(text.data(), static_cast<int32_t>(text.size())),
                            sink, nullptr, status);
  check(U_SUCCESS(status), ErrorKind::internal, "lower_case: ICU says {} for a text of {} bytes",
        u_errorName(status), text.size());
  return lower;
}

}  // namespace heddle::train
