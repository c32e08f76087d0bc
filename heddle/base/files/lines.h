// Reading a text file line by line, plain or gzip-compressed, or the standard input.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace heddle {

/// Errors: data, naming file, line and column, unless the line is UTF-8.
void check_line_utf8(std::string_view line, const std::string& path, int64_t number);

/// Lines of a file. A file that begins with gzip's magic bytes is decompressed, whatever its name;
/// "-" is the standard input, which is handed on as it arrives (no waiting for a full buffer).
/// Lines end with '\n'; '\r' before it is removed too; the last line may lack its '\n'. A
/// byte-order mark at the beginning of the text is no part of it.
/// Errors: data for a missing file, a directory, UTF-16, a truncated or damaged gzip stream, one
/// that gives over 200 times its size (a few kilobytes that are made to fill the memory), a line of
/// more than 256 MiB; system for no permission or a failing disk.
class LineReader {
 public:
  explicit LineReader(const std::string& path);
  ~LineReader();
  LineReader(LineReader&&) noexcept;

  /// Puts the next line in `line`, without its end, and returns true; false at the end of the file.
  bool next(std::string& line);

  /// Whether next() would answer without waiting for whoever writes: a whole line is there, or the
  /// end.
  bool has_waiting();

  /// All that next() has not given yet, as it stands; the reader is at its end then. Errors: data
  /// for 2 GiB and more.
  std::string rest();

  /// The number of the line that next() gave last, from 1; 0 before the first.
  int64_t line_number() const { return line_number_; }

  const std::string& path() const { return path_; }
  /// Errors: data, with its place, unless the line that next() gave last is UTF-8.
  void check_utf8(std::string_view line) const { check_line_utf8(line, path_, line_number_); }

 private:
  class Source;
  // Reads until the end of the next line stands in the buffer, or all of the file does; false if
  // it must not wait for that.
  bool find_line_end(bool may_wait);
  void begin_text(std::string& text) const;

  std::string path_;
  std::unique_ptr<Source> source_;
  std::string buffer_;
  size_t begin_ = 0;     // of what next() has not given
  size_t searched_ = 0;  // no '\n' stands from begin_ to here
  bool is_at_end_ = false;
  int64_t line_number_ = 0;
};

/// All lines of a file. Errors: those of LineReader; data if there is none, with who needs them.
std::vector<std::string> read_lines(const std::string& path, std::string_view who);

/// A text without the byte-order mark that some editors and shells put before it.
std::string_view without_byte_order_mark(std::string_view text);

}  // namespace heddle
