// UTF-8: strict validation and a walk over code points.
#include "heddle/base/utf8.h"

#include <algorithm>
#include <cstring>

#include "heddle/base/error.h"

namespace heddle {

size_t utf8_length(std::string_view text) {
  const auto in = [&](size_t i, unsigned low, unsigned high) {
    const unsigned byte = i < text.size() ? static_cast<unsigned char>(text[i]) : 0u;
    return byte >= low && byte <= high;
  };
  if (text.empty()) return 0;
  const unsigned lead = static_cast<unsigned char>(text[0]);
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

std::optional<size_t> first_invalid_utf8(std::string_view text) {
  size_t i = 0;
  while (i < text.size()) {
    uint64_t eight = 0;
    if (text.size() - i >= sizeof eight) {  // most text is ASCII: eight bytes at a time
      std::memcpy(&eight, text.data() + i, sizeof eight);
      if ((eight & 0x8080808080808080u) == 0) {
        i += sizeof eight;
        continue;
      }
    }
    const size_t length = utf8_length(text.substr(i));
    if (length == 0) return i;
    i += length;
  }
  return std::nullopt;
}

void check_utf8(std::string_view text, const std::string& where) {
  if (const auto at = first_invalid_utf8(text)) {
    check_no_image(text, where);
    fail(ErrorKind::data, "{}: not UTF-8: byte 0x{:02x} at offset {}; convert the text to UTF-8",
         where, static_cast<unsigned char>(text[*at]), *at);
  }
}

void check_no_image(std::string_view bytes, const std::string& where) {
  const char* const format = bytes.starts_with("\x89PNG")        ? "PNG"
                             : bytes.starts_with("\xFF\xD8\xFF") ? "JPEG"
                                                                 : nullptr;
  check(format == nullptr, ErrorKind::data,
        "{}: this is an image ({}), and text is needed; images are for heddle classify, detect, "
        "caption and embed, and for training tasks that read them",
        where, format == nullptr ? "" : format);
}

int64_t count_characters(std::string_view text) {
  return text.size() - std::ranges::count_if(text, is_continuation);
}

size_t end_of_characters(std::string_view text, int64_t count) {
  size_t at = 0;
  for (; at < text.size(); ++at) {
    if (!is_continuation(text[at]) && count-- == 0) break;
  }
  return at;
}

std::string shortened(const std::string& text, int64_t most) {
  const size_t end = end_of_characters(text, most);
  return end < text.size() ? text.substr(0, end) + "…" : text;
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
