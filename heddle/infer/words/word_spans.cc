// Tokens into words: a space or a change to or from punctuation begins a new one.
#include "heddle/infer/words/word_spans.h"

#include <algorithm>
#include <cctype>
#include <string_view>

namespace heddle {

bool is_punctuation(std::string_view token) {
  return !token.empty() && std::all_of(token.begin(), token.end(), [](char c) {
    return std::ispunct(static_cast<unsigned char>(c)) != 0 && c != '\'' && c != '-';
  });
}

std::string token_text(const Tokenizer& tokenizer, int32_t id) {
  if (tokenizer.kind() == "byte-level BPE" && !tokenizer.is_special(id)) {
    return tokenizer.decode({&id, 1});
  }
  std::string token = tokenizer.token(id);
  for (size_t at; (at = token.find(kSpaceSign)) != std::string::npos;) {
    token.replace(at, kSpaceSign.size(), " ");
  }
  return token;
}

std::string bare_token(const std::string& token) {
  if (token.size() == 6 && token.starts_with("<0x") && token.back() == '>') {
    return {static_cast<char>(std::stoi(token.substr(3, 2), nullptr, 16))};
  }
  return token.starts_with(kSpaceSign) ? token.substr(kSpaceSign.size()) : token;
}

std::vector<WordSpan> word_spans(const Tokenizer& tokenizer, std::span<const int32_t> ids) {
  std::vector<WordSpan> words;
  bool has_text = false;  // the last word; else there is only the space before it
  const auto drop_space = [&] {
    if (!words.empty() && !has_text) words.pop_back();
  };
  for (int64_t i = 0; i < std::ssize(ids); ++i) {
    const std::string token = tokenizer.token(ids[static_cast<size_t>(i)]);
    const std::string text = bare_token(token);
    const bool is_mark = is_punctuation(text);
    const bool is_other = has_text && is_mark != words.back().is_punctuation;
    if (words.empty() || token.starts_with(kSpaceSign) || is_other) {
      drop_space();
      words.push_back({i, i});
      has_text = false;
    }
    words.back().end = i + 1;
    if (text.empty()) continue;
    has_text = true;
    words.back().is_punctuation = is_mark;
  }
  drop_space();
  return words;
}

std::string word_text(const Tokenizer& tokenizer, std::span<const int32_t> ids,
                      const WordSpan& word) {
  const auto begin = static_cast<size_t>(word.begin), end = static_cast<size_t>(word.end);
  const std::string text = tokenizer.decode(ids.subspan(begin, end - begin));
  const size_t first = text.find_first_not_of(' ');
  return first == text.npos ? "" : text.substr(first, text.find_last_not_of(' ') + 1 - first);
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
