// Base 64, as tokenizer.json writes character maps and pages their numbers.
#include "heddle/text/strings/base64.h"

#include <cstdint>

#include "heddle/base/error.h"

namespace heddle {

namespace {

int value_of(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  return c == '+' ? 62 : c == '/' ? 63 : -1;
}

}  // namespace

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
    const int value = value_of(text[at]);
    check(value >= 0, ErrorKind::data, "{}: byte 0x{:02x} at offset {} is not base 64", source,
          static_cast<unsigned char>(text[at]), at);
    bits = bits << 6 | static_cast<uint32_t>(value);
    count += 6;
    if (count >= 8) {
      count -= 8;
      bytes += static_cast<char>(bits >> count & 0xFF);
    }
  }
  return bytes;
}

std::string base64_text(std::string_view bytes) {
  constexpr std::string_view kLetters =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t at = 0; at < bytes.size(); at += 3) {
    const std::string_view group = bytes.substr(at, 3);
    uint32_t bits = 0;
    for (size_t i = 0; i < 3; ++i) {
      bits = bits << 8 | (i < group.size() ? static_cast<unsigned char>(group[i]) : 0u);
    }
    for (size_t i = 0; i < 4; ++i) {
      text += i <= group.size() ? kLetters[bits >> (18 - 6 * i) & 63] : '=';
    }
  }
  return text;
}

}  // namespace heddle
