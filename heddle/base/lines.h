// Reading a text file line by line, plain or gzip-compressed, or the standard input.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

namespace heddle {

/// Lines of a file. A file that begins with gzip's magic bytes is decompressed, whatever its name;
/// "-" is the standard input, which is handed on as it arrives (no waiting for a full buffer).
/// Lines end with '\n'; a '\r' before it is removed too; the last line may lack its '\n'.
/// Errors: data for a missing file, a directory, a truncated or damaged gzip stream, one that gives
/// over 250 times its size (a few kilobytes that are made to fill the memory), a line of more than
/// 1 GiB; system for no permission or a failing disk.
class LineReader {
 public:
  explicit LineReader(const std::string& path);
  ~LineReader();
  LineReader(LineReader&&) noexcept;
  LineReader& operator=(LineReader&&) noexcept;

  /// Puts the next line in `line`, without its end, and returns true; false at the end of the file.
  bool next(std::string& line);

  /// All that next() has not given yet, as it stands; the reader is at its end then. Errors: data
  /// for 2 GiB and more.
  std::string rest();

  /// The number of the line that next() gave last, from 1; 0 before the first.
  int64_t line_number() const { return line_number_; }

  const std::string& path() const { return path_; }

 private:
  class Source;
  bool refill();

  std::string path_;
  std::unique_ptr<Source> source_;
  std::string buffer_;
  size_t begin_ = 0;
  int64_t line_number_ = 0;
};

}  // namespace heddle
