// Chunks of rows whose sums are added up apart.
#pragma once

#include <algorithm>
#include <cstdint>

namespace heddle::cpu {

/// Rows in chunks of a fixed size, at least one: how sums over rows are cut is part of their bits.
struct RowChunks {
  static constexpr int64_t kRows = 128;  ///< of a chunk

  int64_t rows;

  int64_t count() const { return std::max<int64_t>(1, (rows + kRows - 1) / kRows); }
  int64_t begin(int64_t i) const { return i * kRows; }
  int64_t end(int64_t i) const { return std::min((i + 1) * kRows, rows); }
};

}  // namespace heddle::cpu
