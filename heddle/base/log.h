// Messages for the user on the standard error; results go to the standard output.
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

}  // namespace heddle
