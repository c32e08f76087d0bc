// Texts whose words were split before, as taggers take them.
#include "heddle/infer/words/encode_words.h"

#include <algorithm>

namespace heddle {

std::vector<std::string> split_words(std::string_view text) {
  constexpr std::string_view kSpace = " \t\n\v\f\r";
  std::vector<std::string> words;
  for (size_t end = 0;;) {
    const size_t begin = text.find_first_not_of(kSpace, end);
    if (begin == text.npos) return words;
    end = std::min(text.find_first_of(kSpace, begin), text.size());
    words.emplace_back(text.substr(begin, end - begin));
  }
}

EncodedWords encode_words(const Tokenizer& tokenizer, std::span<const std::string> words,
                          int64_t longest) {
  EncodedWords result;
  std::vector<int32_t> ids;
  for (const std::string& word : words) {
    const std::vector<int32_t> own = tokenizer.encode(word);
    const bool has_first = !own.empty() && std::ssize(ids) < longest;
    result.first_rows.push_back(has_first ? std::ssize(ids) : -1);
    ids.insert(ids.end(), own.begin(), own.end());
  }
  if (std::ssize(ids) > longest) {
    ids.resize(static_cast<size_t>(longest));
    result.was_cut = true;
  }
  result.encoding = tokenizer.with_special(ids);
  // The special ids stand before and behind: where the text begins is where its ids do.
  const std::vector<int32_t>& all = result.encoding.ids;
  const auto at = std::search(all.begin(), all.end(), ids.begin(), ids.end()) - all.begin();
  for (int64_t& row : result.first_rows) {
    if (row >= 0) row += at;
  }
  return result;
}

}  // namespace heddle
