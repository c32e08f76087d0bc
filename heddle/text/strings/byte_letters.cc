// Byte-level BPE writes each byte as a visible character.
#include "heddle/text/strings/byte_letters.h"

#include <array>

#include "heddle/base/utf8.h"
#include "heddle/text/strings/characters.h"

namespace heddle {

namespace {

constexpr int kLetters = 0x100 + 68;  // code points from 0

struct Tables {
  std::array<std::string, 256> letters;
  std::array<int, kLetters> bytes;  // -1: stands for none

  Tables() {
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

const Tables& tables() {
  static const Tables all;
  return all;
}

}  // namespace

void append_byte_letters(std::string_view bytes, std::string& text) {
  const Tables& t = tables();
  for (const char byte : bytes) text += t.letters[static_cast<unsigned char>(byte)];
}

std::optional<std::string> bytes_of_letters(std::string_view text) {
  const Tables& t = tables();
  std::string bytes;
  for (size_t at = 0; at < text.size();) {
    const char32_t c = next_code_point(text, at);
    if (c >= kLetters || t.bytes[c] < 0) return std::nullopt;
    bytes += static_cast<char>(t.bytes[c]);
  }
  return bytes;
}

}  // namespace heddle
