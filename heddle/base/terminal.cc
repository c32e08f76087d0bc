// Text of files on its way to a terminal: control characters are spelled out, never obeyed.
#include "heddle/base/terminal.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>

#include "heddle/base/utf8.h"

namespace heddle {
namespace {

bool is_control(unsigned char c) { return (c < 0x20 && c != '\t' && c != '\n') || c == 0x7F; }

// Bytes of a character that begins so; 0 if none does.
size_t length_of(unsigned char lead) {
  if (lead >= 0xC2 && lead <= 0xDF) return 2;
  if (lead >= 0xE0 && lead <= 0xEF) return 3;
  return lead >= 0xF0 && lead <= 0xF4 ? 4 : 0;
}

void spell_byte(unsigned char c, std::string& out) { out += fmt::format("\\x{:02x}", c); }

void add_character(std::string_view character, std::string& out) {
  size_t at = 0;
  const auto code = static_cast<uint32_t>(next_code_point(character, at));
  const bool is_obeyed = (code >= 0x80 && code < 0xA0) || (code >= 0x202A && code <= 0x202E) ||
                         (code >= 0x2066 && code <= 0x2069);
  is_obeyed ? out += fmt::format("\\u{:04x}", code) : out += character;
}

// What stands behind the standard output while a terminal is there.
ssize_t write_spelled(void* speller, const char* text, size_t size) {
  std::string out;
  static_cast<ControlSpeller*>(speller)->add({text, size}, out);
  for (size_t at = 0; at < out.size();) {
    const ssize_t n = write(STDOUT_FILENO, out.data() + at, out.size() - at);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return 0;  // that is how fopencookie() is told of an error
    at += static_cast<size_t>(n);
  }
  return static_cast<ssize_t>(size);
}

}  // namespace

void ControlSpeller::add(std::string_view part, std::string& out) {
  for (const char each : part) {
    const auto c = static_cast<unsigned char>(each);
    if (!begun_.empty() && is_continuation(each)) {
      begun_ += each;
      if (begun_.size() < needed_) continue;
      add_character(begun_, out);
      begun_.clear();
      continue;
    }
    finish(out);
    needed_ = length_of(c);
    if (needed_ > 0) {
      begun_ = each;
    } else {
      is_control(c) || c >= 0x80 ? spell_byte(c, out) : out.push_back(each);
    }
  }
}

void ControlSpeller::finish(std::string& out) {
  for (const char c : begun_) spell_byte(static_cast<unsigned char>(c), out);
  begun_.clear();
}

std::string printable(std::string_view text) {
  std::string out;
  ControlSpeller speller;
  speller.add(text, out);
  speller.finish(out);
  return out;
}

void guard_terminal() {
  if (isatty(STDOUT_FILENO) != 1) return;
  static ControlSpeller* const speller = new ControlSpeller;  // lives until the last flush
  cookie_io_functions_t functions = {};
  functions.write = write_spelled;
  FILE* const guarded = fopencookie(speller, "w", functions);
  if (guarded == nullptr) return;
  std::setvbuf(guarded, nullptr, _IOLBF, BUFSIZ);
  stdout = guarded;
}

}  // namespace heddle
