// Messages on the standard error. Refused alternative: spdlog, whose header costs two seconds a
// file for what is one locked fwrite.
#include "heddle/base/log.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <mutex>

#include "heddle/base/terminal.h"

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

}  // namespace heddle
