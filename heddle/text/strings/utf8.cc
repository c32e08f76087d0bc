// UTF-8: strict validation and a walk over code points.
#include "heddle/text/strings/utf8.h"

#include <cstring>

#include "heddle/base/error.h"

namespace heddle {

namespace {

/// Bytes of the well-formed sequence that begins at p, 0 if there is none.
size_t sequence_length(const unsigned char* p, size_t left) {
  const auto in = [&](size_t i, unsigned low, unsigned high) {
    return i < left && p[i] >= low && p[i] <= high;
  };
  const unsigned lead = p[0];
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead <= 0xDF) return in(1, 0x80, 0xBF) ? 2 : 0;
  if (lead >= 0xE0 && lead <= 0xEF) {
    const unsigned low = lead == 0xE0 ? 0xA0 : 0x80;   // below: overlong
    const unsigned high = lead == 0xED ? 0x9F : 0xBF;  // above: surrogates
    return in(1, low, high) && in(2, 0x80, 0xBF) ? 3 : 0;
  }
  if (lead >= 0xF0 && lead <= 0xF4) {
    const unsigned low = lead == 0xF0 ? 0x90 : 0x80;   // below: overlong
    const unsigned high = lead == 0xF4 ? 0x8F : 0xBF;  // above: beyond U+10FFFF
    return in(1, low, high) && in(2, 0x80, 0xBF) && in(3, 0x80, 0xBF) ? 4 : 0;
  }
  return 0;
}

}  // namespace

std::optional<size_t> first_invalid_utf8(std::string_view text) {
  const auto* p = reinterpret_cast<const unsigned char*>(text.data());
  size_t i = 0;
  while (i < text.size()) {
    uint64_t eight = 0;
    if (text.size() - i >= sizeof eight) {  // most text is ASCII: eight bytes at a time
      std::memcpy(&eight, p + i, sizeof eight);
      if ((eight & 0x8080808080808080u) == 0) {
        i += sizeof eight;
        continue;
      }
    }
    const size_t length = sequence_length(p + i, text.size() - i);
    if (length == 0) return i;
    i += length;
  }
  return std::nullopt;
}

void check_utf8(std::string_view text, const std::string& where) {
  if (const auto at = first_invalid_utf8(text)) {
    fail(ErrorKind::data, "{}: not UTF-8: byte 0x{:02x} at offset {}; convert the text to UTF-8",
         where, static_cast<unsigned char>(text[*at]), *at);
  }
}

char32_t next_code_point(std::string_view text, size_t& at) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned lead = byte(at);
  const size_t length = lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  char32_t c = length == 1 ? lead : lead & (0xFFu >> (length + 1));
  for (size_t i = 1; i < length; ++i) c = (c << 6) | (byte(at + i) & 0x3Fu);
  at += length;
  return c;
}

}  // namespace heddle
