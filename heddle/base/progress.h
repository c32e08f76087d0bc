// How far a long piece of work is: a bar on a terminal, plain lines elsewhere.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace heddle {

/// Shows label, fraction done, free text and the time left on the standard error; nothing when the
/// log level is below info.
///
///   Progress progress("training", done / total);
///   if (progress.is_due()) progress.update(done / total, fmt::format("epoch {}  loss {:.2f}", e,
///   l));
///
/// On a terminal:  training [=====>      ]  42 %  epoch 3  loss 2.31  12,345 tok/s  1 min 05 s left
class Progress {
 public:
  /// start: the fraction that an earlier run had done, kept out of the estimate of time left.
  /// line_seconds: time between plain lines where there is no terminal.
  explicit Progress(std::string label, double start = 0, double line_seconds = 10);
  /// Takes the bar away.
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// True if update() would show something: 10 times a second on a terminal, else every
  /// line_seconds. Asking costs some 50 ns, so a hot loop may do so.
  bool is_due() const;
  /// Shows the fraction (0 to 1) and the text if that is due.
  void update(double fraction, std::string_view text);

 private:
  using Clock = std::chrono::steady_clock;
  std::string label_;
  double start_;
  bool is_terminal_;
  Clock::time_point begin_ = Clock::now();
  Clock::time_point next_;
  Clock::duration interval_;
};

/// A line of at most `columns` bytes with a bar that takes the room that is left, from 10 to 30
/// cells; without a bar if columns is 0 (a plain line, of any length). seconds_left below 0:
/// unknown.
std::string progress_line(std::string_view label, double fraction, std::string_view text,
                          double seconds_left, int columns);

/// "0.4 s", "12 s", "3 min 05 s", "2 h 07 min", "3 d 04 h".
std::string format_duration(double seconds);
/// "1,234,567".
std::string format_count(int64_t count);
/// "1 update", "1,234 updates"; of a plural that is not made by an s: counted(2, "class",
/// "classes").
std::string counted(int64_t count, std::string_view one, std::string_view several = "");

}  // namespace heddle
