// Messages for the user on the standard error; results go to the standard output. On their way to a
// terminal control characters are spelled out, never obeyed.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

namespace heddle {

enum class LogLevel : int { error, warning, info };

/// The most talkative level that is shown; info at the start. `--quiet` sets error.
void set_log_level(LogLevel level);
LogLevel log_level();

/// Writes one line, "warning: TEXT" or "error: TEXT" for those levels and "TEXT" for the others, as
/// one piece even when threads write at once. A status line that is shown stays below it.
void log_line(LogLevel level, std::string_view text);

template <class... Args>
void log_error(fmt::format_string<Args...> format, const Args&... args) {
  log_line(LogLevel::error, fmt::vformat(format, fmt::make_format_args(args...)));
}
template <class... Args>
void log_warning(fmt::format_string<Args...> format, const Args&... args) {
  if (log_level() < LogLevel::warning) return;
  log_line(LogLevel::warning, fmt::vformat(format, fmt::make_format_args(args...)));
}
template <class... Args>
void log_info(fmt::format_string<Args...> format, const Args&... args) {
  if (log_level() < LogLevel::info) return;
  log_line(LogLevel::info, fmt::vformat(format, fmt::make_format_args(args...)));
}

/// True if the standard error is a terminal that can move its cursor.
bool is_terminal();
/// Columns of that terminal; 80 if it does not say.
int terminal_columns();
/// Shows a line that later messages push down and the next call replaces; "" removes it. For
/// terminals only.
void set_status_line(std::string text);

/// Spells out what a terminal would obey rather than show: control characters (C0 but tab and line
/// feed, DEL, C1), the signs that turn the direction of text around (U+202A..E, U+2066..9), and
/// bytes that are not UTF-8: "\x1b", "\u009b", "\xff". All else stays as it is. A text may come in
/// parts; a character that a part cuts in two waits for the next one.
class ControlSpeller {
 public:
  /// Appends what can be shown of a part to `out`.
  void add(std::string_view part, std::string& out);
  /// Appends the beginning of a character that never came whole.
  void finish(std::string& out);

 private:
  std::string begun_;  // of a character of several bytes
  size_t needed_ = 0;  // bytes of it
};

/// A whole text with its control characters spelled out, see ControlSpeller. For messages, wherever
/// they go: they quote names and texts of files.
std::string printable(std::string_view text);

/// If the standard output is a terminal, what is written to `stdout` from now on has its control
/// characters spelled out. Files and pipes get every byte as it is.
void guard_terminal();

}  // namespace heddle
