// Text of files on its way to a terminal: control characters are spelled out, never obeyed.
#pragma once

#include <string>
#include <string_view>

namespace heddle {

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
