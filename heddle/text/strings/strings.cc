// Small operations on texts, and what one must be before a tokenizer sees it.
#include "heddle/text/strings/strings.h"

#include <unicode/unistr.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "heddle/base/error.h"
#include "heddle/base/utf8.h"
#include "heddle/text/strings/characters.h"

namespace heddle {

size_t most_bytes(size_t text) { return std::min<size_t>(64 * text + 1024, INT32_MAX); }

void check_growth(size_t bytes, size_t most) {
  check(
      bytes <= most, ErrorKind::data,
      "tokenizer: its steps make {} bytes of a text, more than {} (64 for each of the text's, and "
      "less than 2 GiB); its files are damaged, or made to fill memory",
      bytes, most);
}

void check_text(std::string_view text, const std::string& where) {
  check(text.size() <= kLongestText, ErrorKind::data,
        "{}: {} bytes are too long for one text; a model takes 1 MiB ({} bytes) at most. Split it "
        "into lines",
        where, text.size(), kLongestText);
  check_utf8(text, where);
}

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    lines.push_back(line);
  }
  return lines;
}

std::string replace_all(std::string_view text, std::string_view from, std::string_view to) {
  std::string result;
  for (size_t at = 0;;) {
    const size_t found = text.find(from, at);
    result.append(text.substr(at, found - at));
    if (found == text.npos) return result;
    result.append(to);
    at = found + from.size();
  }
}

std::vector<std::string> split_at_commas(std::string_view text) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    if (end > begin) parts.emplace_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

std::vector<std::string> split_at_spaces(std::string_view text) {
  constexpr std::string_view kSpace = " \t\n\v\f\r";
  std::vector<std::string> words;
  for (size_t end = 0;;) {
    const size_t begin = text.find_first_not_of(kSpace, end);
    if (begin == text.npos) return words;
    end = std::min(text.find_first_of(kSpace, begin), text.size());
    words.emplace_back(text.substr(begin, end - begin));
  }
}

std::string replace_invalid_utf8(std::string_view bytes) {
  std::string text;
  const auto size = static_cast<int32_t>(bytes.size());
  return icu::UnicodeString::fromUTF8({bytes.data(), size}).toUTF8String(text);
}

std::string_view trimmed(std::string_view text) {
  size_t begin = text.size(), end = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t front = at;
    if (is_white_space(next_code_point(text, at))) continue;
    begin = std::min(begin, front);
    end = at;
  }
  return end == 0 ? std::string_view() : text.substr(begin, end - begin);
}

std::string lower_case(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  for (size_t at = 0; at < text.size();) append_lower_case(next_code_point(text, at), result);
  return result;
}

std::string unused_character(std::string_view text, std::span<const char32_t> taken) {
  constexpr char32_t kFirst = 0x100000, kLast = 0x10FFFD;
  constexpr char kLead = '\xF4';  // of all of them, and of nothing else
  std::vector<bool> is_used(kLast - kFirst + 1);
  const auto use = [&](char32_t c) {
    if (c >= kFirst && c <= kLast) is_used[c - kFirst] = true;
  };
  for (const char32_t c : taken) use(c);
  for (size_t at = 0; (at = text.find(kLead, at)) != text.npos;) use(next_code_point(text, at));
  const auto free = std::ranges::find(is_used, false);
  std::string result;
  if (free != is_used.end()) {
    append_utf8(kFirst + static_cast<char32_t>(free - is_used.begin()), result);
  }
  return result;
}

std::string clean_up_spaces(std::string text) {
  static constexpr std::pair<std::string_view, std::string_view> kRules[] = {
      {" .", "."},     {" ?", "?"},   {" !", "!"},   {" ,", ","},     {" ' ", "'"},
      {" n't", "n't"}, {" 'm", "'m"}, {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
  for (const auto& [from, to] : kRules) {
    if (text.find(from) != text.npos) text = replace_all(text, from, to);
  }
  return text;
}

}  // namespace heddle
