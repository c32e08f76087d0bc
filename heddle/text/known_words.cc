// Words between spaces, and which of them were seen before.
#include "heddle/text/known_words.h"

#include "heddle/base/error.h"
#include "heddle/base/files/files.h"
#include "heddle/base/files/lines.h"
#include "heddle/base/utf8.h"
#include "heddle/text/strings/strings.h"

namespace heddle {
namespace {

bool is_hyphen(char32_t c) { return c == '-' || (c >= 0x2010 && c <= 0x2015); }

// Adds the word, lower-cased and without what stands around its letters.
void add_word(std::u32string_view word, std::vector<std::string>& words) {
  const auto is_outer = [](char32_t c) {
    return !is_letter(c) && !is_number(c) && !is_combining_mark(c);
  };
  while (!word.empty() && is_outer(word.front())) word.remove_prefix(1);
  while (!word.empty() && is_outer(word.back())) word.remove_suffix(1);
  if (word.empty()) return;
  std::string text;
  for (const char32_t c : word) {
    if (is_number(c)) return;
    append_utf8(c == 0x2019 ? U'\'' : c, text);
  }
  words.push_back(lower_case(text));
}

}  // namespace

std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  std::u32string word;
  for (size_t at = 0; at < text.size();) {
    const char32_t c = next_code_point(text, at);
    if (!is_white_space(c) && !is_hyphen(c)) {
      word += c;
      continue;
    }
    add_word(word, words);
    word.clear();
  }
  add_word(word, words);
  return words;
}

std::optional<KnownWords> KnownWords::of_texts(const std::function<bool(std::string& text)>& next,
                                               KnownWords first) {
  KnownWords known = std::move(first);
  for (std::string text; next(text);) {
    for (std::string& word : words_of(text)) known.words_.insert(std::move(word));
    if (known.size() > kMost) return std::nullopt;
  }
  return known;
}

std::optional<KnownWords> KnownWords::find(const std::string& folder) {
  const std::string path = join_path(folder, kFileName);
  if (!path_exists(path)) return std::nullopt;
  KnownWords known;
  LineReader reader(path);
  for (std::string line; reader.next(line);) {
    check_utf8(line, fmt::format("{}: line {}", path, reader.line_number()));
    known.words_.insert(std::move(line));
    check(known.size() <= kMost, ErrorKind::data, "{}: more than {} words", path, kMost);
  }
  return known;
}

void KnownWords::save(const std::string& folder) const {
  std::string text;
  for (const std::string& word : words_) text += word + "\n";
  const std::string path = join_path(folder, kFileName);
  if (!path_exists(path) || read_file(path) != text) write_file_atomic(path, text);
}

std::vector<std::string> KnownWords::unknown_words(std::string_view text) const {
  std::vector<std::string> unknown = words_of(text);
  std::erase_if(unknown, [&](const std::string& word) { return words_.contains(word); });
  return unknown;
}

}  // namespace heddle
