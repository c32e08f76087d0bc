// Characters and small operations on texts.
#include "heddle/text/strings/strings.h"

#include <unicode/uchar.h>
#include <unicode/unistr.h>
#include <unicode/utf8.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <ranges>
#include <sstream>
#include <utility>

#include "heddle/base/error.h"
#include "heddle/base/utf8.h"

namespace heddle {
namespace {

constexpr std::string_view kBase64 =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
// What each byte stands for; 64: nothing.
constexpr auto kBase64Values = [] {
  std::array<uint8_t, 256> values = {};
  values.fill(64);
  for (size_t i = 0; i < kBase64.size(); ++i) {
    values[static_cast<unsigned char>(kBase64[i])] = static_cast<uint8_t>(i);
  }
  return values;
}();

UChar32 code(char32_t c) { return static_cast<UChar32>(c); }

bool is_in(char32_t c, uint32_t mask) { return (U_GET_GC_MASK(code(c)) & mask) != 0; }

/// Whether a character was there in that version of Unicode. Some few were of another category
/// then: they are excepted where it matters, and were found by asking `tokenizers` 0.23 for each
/// character (2026-11-22, ICU 72).
bool is_as_old_as(char32_t c, int version) {
  UVersionInfo age;
  u_charAge(code(c), age);
  return age[0] <= version;
}

constexpr int kLetters = 0x100 + 68;  // code points from 0

struct ByteLetters {
  std::array<std::string, 256> letters;
  std::array<int, kLetters> bytes;  // -1: stands for none

  ByteLetters() {
    bytes.fill(-1);
    char32_t next = 0x100;
    for (int byte = 0; byte < 256; ++byte) {
      const bool is_visible = (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte != 0xAD);
      const char32_t letter = is_visible ? static_cast<char32_t>(byte) : next++;
      bytes[letter] = byte;
      append_utf8(letter, letters[byte]);
    }
  }
};

const ByteLetters& byte_letters() {
  static const ByteLetters all;
  return all;
}

}  // namespace

bool is_white_space(char32_t c) {
  if (c < 0x80) return c == ' ' || (c >= '\t' && c <= '\r');
  return u_isUWhiteSpace(code(c));
}

bool is_letter(char32_t c) { return is_in(c, U_GC_L_MASK); }
bool is_number(char32_t c) { return is_in(c, U_GC_N_MASK); }

bool is_word_character(char32_t c) {
  return is_in(c, U_GC_L_MASK | U_GC_M_MASK | U_GC_ND_MASK | U_GC_PC_MASK) || c == 0x200C ||
         c == 0x200D || (c >= 0x80 && u_isUAlphabetic(code(c)));
}

bool is_punctuation(char32_t c) {
  if (c < 0x80) {
    return (c >= 33 && c <= 47) || (c >= 58 && c <= 64) || (c >= 91 && c <= 96) ||
           (c >= 123 && c <= 126);
  }
  const bool was_punctuation = c == 0x166D || c == 0x111C9;
  return was_punctuation || (is_in(c, U_GC_P_MASK) && is_as_old_as(c, 8));
}

bool is_control(char32_t c) {
  if (c == '\t' || c == '\n' || c == '\r') return false;
  return is_in(c, U_GC_CC_MASK | U_GC_CF_MASK | U_GC_CO_MASK) && is_as_old_as(c, 8);
}

bool is_nonspacing_mark(char32_t c) {
  const bool became_one = c == 0x1885 || c == 0x1886 || c == 0xA9BD || c == 0x111C9;
  return c == 0x1734 || (c >= 0x80 && is_in(c, U_GC_MN_MASK) && is_as_old_as(c, 8) && !became_one);
}

bool is_combining_mark(char32_t c) {
  const bool was_one = c == 0x1CF2 || c == 0x1CF3, became_one = c == 0x111C9;
  return was_one || (c >= 0x80 && is_in(c, U_GC_M_MASK) && is_as_old_as(c, 9) && !became_one);
}

bool is_chinese(char32_t c) {
  return (c >= 0x4E00 && c <= 0x9FFF) || (c >= 0x3400 && c <= 0x4DBF) ||
         (c >= 0x20000 && c <= 0x2A6DF) || (c >= 0x2A700 && c <= 0x2B81F) ||
         (c >= 0x2B920 && c <= 0x2CEAF) || (c >= 0xF900 && c <= 0xFAFF) ||
         (c >= 0x2F800 && c <= 0x2FA1F);
}

void append_utf8(char32_t c, std::string& text) {
  char bytes[U8_MAX_LENGTH];
  int32_t size = 0;
  U8_APPEND_UNSAFE(bytes, size, c);
  text.append(bytes, static_cast<size_t>(size));
}

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

std::string html_escaped(std::string_view text, bool escapes_quotes) {
  std::string all;
  for (const char c : text) {
    switch (c) {
      case '&': all += "&amp;"; break;
      case '<': all += "&lt;"; break;
      case '>': all += "&gt;"; break;
      case '"': all += escapes_quotes ? "&#34;" : "\""; break;
      case '\'': all += escapes_quotes ? "&#39;" : "'"; break;
      default: all += c;
    }
  }
  return all;
}

std::vector<std::string> split_at_commas(std::string_view text) {
  std::vector<std::string> parts;
  for (const auto part : std::views::split(text, ',')) {
    if (!part.empty()) parts.emplace_back(part.begin(), part.end());
  }
  return parts;
}

std::vector<std::string> split_at_spaces(std::string_view text) {
  std::istringstream words{std::string(text)};
  return std::vector<std::string>(std::istream_iterator<std::string>(words), {});
}

std::string replace_invalid_utf8(std::string_view bytes) {
  std::string text;
  const auto size = static_cast<int32_t>(bytes.size());
  return icu::UnicodeString::fromUTF8({bytes.data(), size}).toUTF8String(text);
}

std::optional<char> byte_of_token(std::string_view token) {
  if (token.size() != 6 || !token.starts_with("<0x") || token[5] != '>') return std::nullopt;
  unsigned value = 0;
  const auto [end, error] = std::from_chars(token.data() + 3, token.data() + 5, value, 16);
  if (error != std::errc() || end != token.data() + 5) return std::nullopt;
  return static_cast<char>(value);
}

size_t begun_at_end(std::string_view text, std::string_view mark) {
  size_t n = std::min(mark.empty() ? 0 : mark.size() - 1, text.size());
  while (n > 0 && !text.ends_with(mark.substr(0, n))) --n;
  return n;
}

size_t last_character(std::string_view text) {
  size_t at = text.size() - 1;
  while (at > 0 && is_continuation(text[at])) --at;
  return at;
}

size_t leading_space(std::string_view text) {
  size_t end = 0;
  for (size_t at = 0; at < text.size() && is_white_space(next_code_point(text, at));) end = at;
  return end;
}

size_t trailing_space(std::string_view text) {
  size_t begin = text.size();
  while (begin > 0) {
    const size_t first = last_character(text.substr(0, begin));
    size_t at = first;
    if (!is_white_space(next_code_point(text, at))) break;
    begin = first;
  }
  return text.size() - begin;
}

std::string_view trimmed(std::string_view text) {
  text.remove_prefix(leading_space(text));
  text.remove_suffix(trailing_space(text));
  return text;
}

std::string lower_case(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const char32_t c = next_code_point(text, at);
    if (c < 0x80) {
      result += static_cast<char>(c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c);
    } else if (c == 0x130) {
      result += "i\u0307";
    } else {
      append_utf8(static_cast<char32_t>(u_tolower(code(c))), result);
    }
  }
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

std::string base64_bytes(std::string_view text, const std::string& source) {
  check(text.size() % 4 == 0, ErrorKind::data,
        "{}: {} characters of base 64; a multiple of 4 is needed, it may be cut short", source,
        text.size());
  for (int i = 0; i < 2 && text.ends_with('='); ++i) text.remove_suffix(1);
  std::string bytes;
  bytes.reserve(text.size() / 4 * 3 + 2);
  uint32_t bits = 0;
  int count = 0;
  for (size_t at = 0; at < text.size(); ++at) {
    const uint32_t value = kBase64Values[static_cast<unsigned char>(text[at])];
    check(value < 64, ErrorKind::data, "{}: byte 0x{:02x} at offset {} is not base 64", source,
          static_cast<unsigned char>(text[at]), at);
    bits = bits << 6 | value;
    count += 6;
    if (count >= 8) {
      count -= 8;
      bytes += static_cast<char>(bits >> count & 0xFF);
    }
  }
  return bytes;
}

std::string base64_text(std::string_view bytes) {
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t at = 0; at < bytes.size(); at += 3) {
    const std::string_view group = bytes.substr(at, 3);
    uint32_t bits = 0;
    for (size_t i = 0; i < 3; ++i) {
      bits = bits << 8 | (i < group.size() ? static_cast<unsigned char>(group[i]) : 0u);
    }
    for (size_t i = 0; i < 4; ++i) {
      text += i <= group.size() ? kBase64[bits >> (18 - 6 * i) & 63] : '=';
    }
  }
  return text;
}

void append_byte_letters(std::string_view bytes, std::string& text) {
  const ByteLetters& all = byte_letters();
  for (const char byte : bytes) text += all.letters[static_cast<unsigned char>(byte)];
}

std::optional<std::string> bytes_of_letters(std::string_view text) {
  const ByteLetters& all = byte_letters();
  std::string bytes;
  for (size_t at = 0; at < text.size();) {
    const char32_t c = next_code_point(text, at);
    if (c >= kLetters || all.bytes[c] < 0) return std::nullopt;
    bytes += static_cast<char>(all.bytes[c]);
  }
  return bytes;
}

}  // namespace heddle
