// GPT-2's words without a regular expression.
#include <array>

#include "heddle/base/utf8.h"
#include "heddle/text/pipeline/pre_tokenizer.h"
#include "heddle/text/strings/characters.h"

namespace heddle {

namespace {

enum class Class { letter, number, space, other };

Class class_of(char32_t c) {
  if (is_letter(c)) return Class::letter;
  if (is_number(c)) return Class::number;
  return is_white_space(c) ? Class::space : Class::other;
}

class WordFinder {
 public:
  explicit WordFinder(std::string_view text) : text_(text) {}

  /// The end of the word that begins at `at`.
  size_t end_of_word(size_t at) const {
    if (const size_t end = contraction(at)) return end;
    size_t first = at;
    Class kind = read(first);
    if (kind == Class::space) {
      size_t second = first;
      if (text_[at] != ' ' || first == text_.size()) return spaces(at);
      kind = read(second);
      if (kind == Class::space) return spaces(at);
      first = second;
    }
    return run(first, kind);
  }

 private:
  /// The class of the character at `at`, which moves behind it.
  Class read(size_t& at) const { return class_of(next_code_point(text_, at)); }

  size_t run(size_t at, Class kind) const {
    for (size_t next = at; next < text_.size() && read(next) == kind;) at = next;
    return at;
  }

  size_t spaces(size_t begin) const {
    size_t last = begin, end = begin;  // last: where the last character of the run begins
    for (size_t next = begin; next < text_.size();) {
      const size_t at = next;
      if (read(next) != Class::space) break;
      last = at;
      end = next;
    }
    return end == text_.size() || last == begin ? end : last;
  }

  size_t contraction(size_t at) const {
    static constexpr std::array<std::string_view, 7> kEndings = {"'s", "'t",  "'re", "'ve",
                                                                 "'m", "'ll", "'d"};
    if (text_[at] != '\'') return 0;
    for (const std::string_view ending : kEndings) {
      if (text_.substr(at, ending.size()) == ending) return at + ending.size();
    }
    return 0;
  }

  std::string_view text_;
};

}  // namespace

void gpt2_words(std::string_view text, std::vector<size_t>& ends) {
  const WordFinder words(text);
  for (size_t at = 0; at < text.size();) ends.push_back(at = words.end_of_word(at));
}

}  // namespace heddle
