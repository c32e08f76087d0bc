// Messages on the standard error. Refused alternative: spdlog, whose header costs two seconds a
// file for what is one locked fwrite.
#include "heddle/base/log.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <mutex>

#include "heddle/base/utf8.h"

namespace heddle {
namespace {

std::atomic<LogLevel> g_level{LogLevel::info};

/// What is on the last line of the terminal, and the lock of all that write there.
struct Screen {
  std::mutex mutex;
  std::string status;
};
Screen& screen() {
  static Screen* screen = new Screen;  // never destroyed: messages may come from exit handlers
  return *screen;
}

constexpr const char* kClearLine = "\r\x1b[K";

void put(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
}

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

void set_log_level(LogLevel level) { g_level = level; }
LogLevel log_level() { return g_level; }

void log_line(LogLevel level, std::string_view text) {
  if (level > g_level.load()) return;
  const char* head = level == LogLevel::error     ? "error: "
                     : level == LogLevel::warning ? "warning: "
                                                  : "";
  Screen& s = screen();
  const std::lock_guard lock(s.mutex);
  const std::string line = fmt::format("{}{}\n", head, printable(text));
  put(s.status.empty() ? line : kClearLine + line + s.status);
}

bool is_terminal() {
  const char* term = std::getenv("TERM");
  return isatty(STDERR_FILENO) == 1 && term != nullptr && std::string_view(term) != "dumb";
}

int terminal_columns() {
  winsize size = {};
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 80;
  return size.ws_col;
}

void set_status_line(std::string text) {
  Screen& s = screen();
  const std::lock_guard lock(s.mutex);
  if (text.empty() && s.status.empty()) return;
  s.status = printable(text);
  put(kClearLine + s.status);
}

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
