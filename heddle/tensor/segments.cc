// Offsets of packed sequences, checked.
#include "heddle/tensor/segments.h"

#include <algorithm>

#include "heddle/base/error.h"

namespace heddle {

Segments Segments::from_lengths(std::span<const int64_t> lengths) {
  Segments s;
  s.offsets_.reserve(lengths.size() + 1);
  for (int64_t length : lengths) {
    check(length >= 0, ErrorKind::shape, "a sequence has the negative length {}", length);
    s.offsets_.push_back(s.offsets_.back() + length);
  }
  return s;
}

Segments Segments::uniform(int64_t n, int64_t length) {
  check(n >= 0, ErrorKind::shape, "there cannot be {} sequences", n);
  return from_lengths(std::vector<int64_t>(static_cast<size_t>(n), length));
}

int64_t Segments::max_length() const {
  int64_t longest = 0;
  for (int64_t i = 0; i < count(); ++i) longest = std::max(longest, length(i));
  return longest;
}

std::vector<int32_t> Segments::positions() const {
  std::vector<int32_t> positions(rows());
  for (int64_t i = 0; i < count(); ++i) {
    for (int64_t r = begin(i); r < end(i); ++r) positions[r] = static_cast<int32_t>(r - begin(i));
  }
  return positions;
}

}  // namespace heddle
