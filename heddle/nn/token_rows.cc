// Positions of tokens; rows of keys and values that stay in place, and lists of whose they are.
#include "heddle/nn/token_rows.h"

#include <algorithm>
#include <utility>

#include "heddle/kernels/kernels.h"
#include "heddle/ops/embedding.h"

namespace heddle::nn {

std::vector<int32_t> TokenRows::positions() const {
  check(segments != nullptr, ErrorKind::shape,
        "tokens have no segments, which say where each sequence begins");
  const auto check_count = [&](const char* what, size_t count) {
    check(count == 0 || std::cmp_equal(count, segments->rows()), ErrorKind::shape,
          "there are {} {} for {} tokens", count, what, segments->rows());
  };
  check_count("position ids", position_ids.size());
  check_count("token types", types.size());
  if (position_ids.empty()) return segments->positions();
  return {position_ids.begin(), position_ids.end()};
}

std::vector<int32_t> TokenRows::answering() const {
  std::vector<int32_t> found;
  for (size_t i = 0; i < answers.size(); ++i) {
    const int64_t end = segments->end(static_cast<int64_t>(i));
    for (int64_t r = end - answers[i]; r < end; ++r) found.push_back(static_cast<int32_t>(r));
  }
  return found;
}

Tensor keep_answers(const Tensor& h, const TokenRows& tokens) {
  return tokens.answers.empty() ? h : gather_rows(h, tokens.answering());
}

void check_ids(std::span<const int32_t> ids, int64_t vocab, const std::string& what,
               ErrorKind kind) {
  for (const int32_t id : ids) {
    check(id >= 0 && id < vocab, kind, "{}: the id {} is not in the vocabulary of {}", what, id,
          vocab);
  }
}

void RowPool::take(int64_t n, std::vector<int32_t>& rows) {
  for (int64_t i = 0; i < n; ++i) {
    rows.push_back(free_.empty() ? size_++ : free_.back());
    if (!free_.empty()) free_.pop_back();
  }
}

void RowCache::put(std::span<const Tensor> parts, DType dtype, std::span<const int32_t> places) {
  const auto n = static_cast<int64_t>(places.size());
  if (n == 0) return;
  const int64_t needed = *std::max_element(places.begin(), places.end()) + 1;
  const int64_t capacity = rows_.defined() ? rows_.size(0) : 0;
  if (needed > capacity) {
    const int64_t wanted = std::max(needed, std::min(limit_, std::max<int64_t>(64, 2 * needed)));
    int64_t width = 0;
    for (const Tensor& part : parts) width += part.size(1);
    Tensor larger = Tensor::empty({wanted, width}, dtype);
    if (capacity > 0) kernels().convert(rows_.rows(), larger.rows().slice(0, capacity));
    rows_ = larger;
  }
  int64_t column = 0;
  for (const Tensor& part : parts) {
    const Tensor columns = rows_.slice(1, column, part.size(1));
    for (int64_t begin = 0, end = 0; begin < n; begin = end) {  // neighbours together
      for (end = begin + 1; end < n && places[end] == places[end - 1] + 1;) ++end;
      kernels().convert(part.rows().slice(begin, end - begin),
                        columns.rows().slice(places[begin], end - begin));
    }
    column += part.size(1);
  }
}

void KvCache::extend(const Segments& tokens) {
  check(tokens.count() == sequences(), ErrorKind::internal,
        "{} segments cannot continue {} sequences", tokens.count(), sequences());
  tokens_ = tokens;
  position_ids_.clear();
  key_rows_.clear();
  new_rows_.clear();
  pool_.take(tokens.rows(), new_rows_);
  for (const int32_t row : new_rows_) {
    holders_.resize(std::max(holders_.size(), static_cast<size_t>(row) + 1));
    holders_[row] = 1;
  }
  std::vector<int64_t> lengths;
  for (int64_t i = 0; i < sequences(); ++i) {
    std::vector<int32_t>& rows = rows_of_[i];
    for (int64_t r = tokens.begin(i); r < tokens.end(i); ++r) {
      position_ids_.push_back(static_cast<int32_t>(rows.size()));
      rows.push_back(new_rows_[r]);
    }
    key_rows_.insert(key_rows_.end(), rows.begin(), rows.end());
    lengths.push_back(static_cast<int64_t>(rows.size()));
  }
  keys_ = Segments::from_lengths(lengths);
}

void KvCache::select(std::span<const int64_t> numbers) {
  std::vector<std::vector<int32_t>> selected;
  for (const int64_t i : numbers) {
    for (const int32_t row : selected.emplace_back(rows_of_[i])) ++holders_[row];
  }
  for (const auto& rows : rows_of_) release(rows);
  rows_of_ = std::move(selected);
}

void KvCache::drop_last(std::span<const int64_t> counts) {
  for (size_t i = 0; i < counts.size(); ++i) {
    std::vector<int32_t>& rows = rows_of_[i];
    release(std::span(rows).last(static_cast<size_t>(counts[i])));
    rows.resize(rows.size() - static_cast<size_t>(counts[i]));
  }
}

void KvCache::release(std::span<const int32_t> rows) {
  std::vector<int32_t> free;
  for (const int32_t row : rows) {
    if (--holders_[row] == 0) free.push_back(row);
  }
  pool_.give_back(free);
}

}  // namespace heddle::nn
