// Progress: when to show, the estimate of the time left, and the layout of a line.
#include "heddle/base/progress.h"

#include <algorithm>
#include <cmath>

#include "heddle/base/log.h"
#include "heddle/base/utf8.h"

namespace heddle {

Progress::Progress(std::string label, double start, double line_seconds)
    : label_(std::move(label)), start_(start), is_terminal_(is_terminal()) {
  const std::chrono::duration<double> wait(is_terminal_ ? 0.1 : line_seconds);
  interval_ = std::chrono::duration_cast<Clock::duration>(wait);
  next_ = begin_ + interval_;
}

Progress::~Progress() {
  if (is_terminal_) set_status_line("");
}

bool Progress::is_due() const { return log_level() >= LogLevel::info && Clock::now() >= next_; }

void Progress::update(double fraction, std::string_view text) {
  if (!is_due()) return;
  const Clock::time_point now = Clock::now();
  next_ = now + interval_;
  const double seconds = std::chrono::duration<double>(now - begin_).count();
  const double done = fraction - start_;
  const double left = done > 0 ? seconds * (1 - fraction) / done : -1;
  if (is_terminal_) {
    set_status_line(progress_line(label_, fraction, text, left, terminal_columns() - 1));
  } else {
    log_line(LogLevel::info, progress_line(label_, fraction, text, left, 0));
  }
}

std::string progress_line(std::string_view label, double fraction, std::string_view text,
                          double seconds_left, int columns) {
  fraction = std::clamp(fraction, 0.0, 1.0);
  std::string tail = fmt::format(" {:3d} %", static_cast<int>(fraction * 100));
  if (!text.empty()) tail += fmt::format("  {}", text);
  if (seconds_left >= 0) tail += fmt::format("  {} left", format_duration(seconds_left));
  if (columns <= 0) return fmt::format("{}{}", label, tail);
  const int room = columns - static_cast<int>(label.size() + tail.size()) - 3;
  std::string line(label);
  if (room >= 10) {
    const auto cells = static_cast<size_t>(std::min(room, 30));
    const auto full = static_cast<size_t>(fraction * static_cast<double>(cells));
    std::string bar(full, '=');
    if (full < cells) bar += '>';
    bar.resize(cells, ' ');
    line += fmt::format(" [{}]", bar);
  }
  line += tail;
  auto end = std::min(line.size(), static_cast<size_t>(columns));
  while (end < line.size() && is_continuation(line[end])) --end;  // no half of a character
  line.resize(end);
  return line;
}

std::string format_duration(double seconds) {
  if (!(seconds >= 0) || seconds > 1e12) return "unknown";
  if (seconds < 9.95) return fmt::format("{:.1f} s", seconds);
  const auto s = static_cast<int64_t>(std::llround(seconds));
  if (s < 60) return fmt::format("{} s", s);
  if (s < 3600) return fmt::format("{} min {:02d} s", s / 60, s % 60);
  if (s < 86400) return fmt::format("{} h {:02d} min", s / 3600, s / 60 % 60);
  return fmt::format("{} d {:02d} h", s / 86400, s / 3600 % 24);
}

std::string format_count(int64_t count) {
  std::string text = fmt::format("{}", count);
  const size_t first = count < 0 ? 1 : 0;
  for (size_t i = text.size(); i > first + 3;) text.insert(i -= 3, ",");
  return text;
}

std::string counted(int64_t count, std::string_view one, std::string_view several) {
  if (count == 1) return fmt::format("1 {}", one);
  return several.empty() ? fmt::format("{} {}s", format_count(count), one)
                         : fmt::format("{} {}", format_count(count), several);
}

}  // namespace heddle
