// Rows of numbers that are computed when they are first needed and kept in a file.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "heddle/base/files/files.h"

namespace heddle {

/// Rows of floats in a file, in any order, each with its checksum: a row that a killed process has
/// written in part, or that was altered, is as good as none. The file is no larger than what was
/// written (the holes of a sparse file take no room). Rows may be read by several threads at once.
class KeptRows {
 public:
  /// Opens the file, or makes it. Errors: system if it cannot be written.
  KeptRows(const std::string& path, int64_t width);

  /// Whether the row (0, 1, ..) is there; then `to` ([width]) has it.
  bool read(int64_t row, std::span<float> to) const;
  /// Keeps a row. A disk that is full is one warning; from then on nothing is kept.
  void write(int64_t row, std::span<const float> from);

  /// Bytes of a row in the file.
  static int64_t row_bytes(int64_t width);

 private:
  std::string path_;
  Descriptor file_;
  int64_t width_;
  bool is_full_ = false;
};

}  // namespace heddle
