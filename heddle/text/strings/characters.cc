// Classes of characters as Hugging Face's `tokenizers` draws them, by ICU; letters for bytes.
#include "heddle/text/strings/characters.h"

#include <unicode/uchar.h>
#include <unicode/utf8.h>

#include <array>

#include "heddle/base/utf8.h"

namespace heddle {
namespace {

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

void append_lower_case(char32_t c, std::string& text) {
  if (c < 0x80) {
    text += static_cast<char>(c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c);
  } else if (c == 0x130) {
    text += "i\u0307";
  } else {
    append_utf8(static_cast<char32_t>(u_tolower(code(c))), text);
  }
}

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
