// Words by numbers.
#include "heddle/train/alignment/word_lines.h"

#include <algorithm>
#include <string_view>

#include "heddle/base/utf8.h"
#include "heddle/text/strings/strings.h"

namespace heddle::train {
namespace {

// The form in which words are compared.
std::string form_of(const std::string& word) {
  size_t begin = word.size(), end = 0;  // of what is no punctuation
  for (size_t at = 0; at < word.size();) {
    const size_t here = at;
    if (is_punctuation(next_code_point(word, at))) continue;
    begin = std::min(begin, here);
    end = at;
  }
  return begin < end ? lower_case(std::string_view(word).substr(begin, end - begin)) : word;
}

}  // namespace

void WordLines::add(std::span<const std::string> words) {
  for (const std::string& word : words) {
    const auto next = static_cast<int32_t>(vocabulary_.size()) + 1;
    numbers_.push_back(vocabulary_.try_emplace(form_of(word), next).first->second);
  }
  begins_.push_back(numbers_.size());
}

void WordLines::add_tokens(std::span<const int32_t> ids) {
  for (const int32_t id : ids) {
    numbers_.push_back(id + 1);
    tokens_ = std::max(tokens_, static_cast<size_t>(id) + 1);
  }
  begins_.push_back(numbers_.size());
}

std::vector<int32_t> WordLines::numbers_of(std::span<const std::string> words) const {
  std::vector<int32_t> numbers;
  for (const std::string& word : words) {
    const auto at = vocabulary_.find(form_of(word));
    numbers.push_back(at == vocabulary_.end() ? kUnknown : at->second);
  }
  return numbers;
}

}  // namespace heddle::train
