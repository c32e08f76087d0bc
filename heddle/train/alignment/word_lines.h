// Lines of text as numbers of their words, for statistics of words.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

namespace heddle::train {

/// Lines as numbers of their words, one behind the other: 4 bytes a word and 8 a line. Words are
/// compared in lower case, without punctuation at their ends.
class WordLines {
 public:
  static constexpr int32_t kNone = 0;      ///< the number of no word
  static constexpr int32_t kUnknown = -1;  ///< of a word that is in no line

  /// Adds a line. Words are UTF-8.
  void add(std::span<const std::string> words);

  /// Adds a line of tokens, whose numbers are their ids + 1; not beside words.
  void add_tokens(std::span<const int32_t> ids);

  /// The numbers of words, from 1, by their first appearance; kUnknown for one that is in no line.
  std::vector<int32_t> numbers_of(std::span<const std::string> words) const;

  int64_t lines() const { return std::ssize(begins_) - 1; }
  /// Words of a line, and those of all lines before it.
  std::span<const int32_t> line(int64_t i) const {
    return std::span(numbers_).subspan(begin(i), begin(i + 1) - begin(i));
  }
  size_t begin(int64_t line) const { return begins_[static_cast<size_t>(line)]; }
  size_t words() const { return numbers_.size(); }
  /// Numbers are from 1 to here: different words, or tokens.
  size_t different() const { return std::max(vocabulary_.size(), tokens_); }

 private:
  std::unordered_map<std::string, int32_t> vocabulary_;
  std::vector<int32_t> numbers_;
  std::vector<size_t> begins_ = {0};
  size_t tokens_ = 0;  // the largest number of one
};

}  // namespace heddle::train
