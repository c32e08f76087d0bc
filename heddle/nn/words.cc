// Rows of keys and values that stay in place, and lists of whose they are.
#include "heddle/nn/words.h"

#include <algorithm>

namespace heddle::nn {

void RowCache::append(const Tensor& rows) {
  const int64_t n = rows.size(0), width = rows.size(1);
  if (!rows_.defined() || used_ + n > rows_.size(0)) {
    Tensor larger = Tensor::empty({std::max<int64_t>(64, 2 * (used_ + n)), width}, rows.dtype());
    if (used_ > 0) {
      kernels().convert(rows_.rows().slice(0, used_), larger.rows().slice(0, used_));
    }
    rows_ = larger;
  }
  kernels().convert(rows.rows(), rows_.rows().slice(used_, n));
  used_ += n;
}

void WordCache::extend(const Segments& words) {
  check(words.count() == sequences(), ErrorKind::internal,
        "{} segments cannot continue {} sequences", words.count(), sequences());
  words_ = words;
  places_.clear();
  key_rows_.clear();
  std::vector<int64_t> lengths;
  for (int64_t i = 0; i < sequences(); ++i) {
    std::vector<int32_t>& rows = rows_of_[i];
    for (int64_t r = words.begin(i); r < words.end(i); ++r) {
      places_.push_back(static_cast<int32_t>(rows.size()));
      rows.push_back(static_cast<int32_t>(used_ + r));
    }
    key_rows_.insert(key_rows_.end(), rows.begin(), rows.end());
    lengths.push_back(static_cast<int64_t>(rows.size()));
  }
  keys_ = Segments::from_lengths(lengths);
  used_ += words.rows();
}

void WordCache::keep(std::span<const int64_t> sequences) {
  std::vector<std::vector<int32_t>> kept;
  for (const int64_t i : sequences) kept.push_back(std::move(rows_of_[i]));
  rows_of_ = std::move(kept);
}

std::vector<int32_t> WordRows::positions() const {
  if (places.empty()) return segments->positions();
  return {places.begin(), places.end()};
}

}  // namespace heddle::nn
