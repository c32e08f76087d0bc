// A batch of sequences laid end to end, without padding.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace heddle {

/// Offsets of n sequences in a tensor of rows: sequence i is rows [offset(i), offset(i + 1)).
class Segments {
 public:
  Segments() : offsets_{0} {}
  /// From the lengths of the sequences (rows). Errors: shape if one is negative.
  static Segments from_lengths(std::span<const int64_t> lengths);
  /// n sequences of equal length. Errors: shape if either is negative.
  static Segments uniform(int64_t n, int64_t length);

  int64_t count() const { return static_cast<int64_t>(offsets_.size()) - 1; }
  int64_t rows() const { return offsets_.back(); }
  int64_t begin(int64_t i) const { return offsets_[i]; }
  int64_t end(int64_t i) const { return offsets_[i + 1]; }
  int64_t length(int64_t i) const { return offsets_[i + 1] - offsets_[i]; }
  int64_t max_length() const;
  /// int64[count + 1]
  std::span<const int64_t> offsets() const { return offsets_; }
  /// Position of each row in its own sequence: 0, 1, .., 0, 1, ..
  std::vector<int32_t> positions() const;
  friend bool operator==(const Segments&, const Segments&) = default;

 private:
  std::vector<int64_t> offsets_;
};

}  // namespace heddle
