// Texts with tags, or with spans that are to survive, as plain texts to translate, and back.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace heddle {

/// What a translation is to keep beside words: tags go with the words that they stand around, by
/// word alignment; what has no words (an image, a placeholder) stays before the word that it stood
/// before. Words are what spaces part; a tag inside one stands around all of it.
/// After bergamot-translator's rules for HTML (2022), with words in the place of tokens.
class MarkedText {
 public:
  /// Pairs of words, source and target, from 0.
  using Links = std::vector<std::pair<int32_t, int32_t>>;

  /// Blocks (paragraphs, cells, lines ended by <br>) are texts of their own; comments, scripts,
  /// styles, <code> and elements with translate="no" stay as they are. What is no tag is text.
  static MarkedText of_html(std::string_view html);
  /// Each occurrence of one of `kept` stays as it is, the longest first.
  static MarkedText of_text(std::string_view text, std::span<const std::string> kept);

  /// The plain texts, words parted by one space; may be none.
  std::vector<std::string> texts() const;
  /// The whole with each text translated. links: of each text    Errors: none: words that are not
  /// there are passed over.
  std::string with(std::span<const std::string> translations, std::span<const Links> links) const;

 private:
  struct Word {
    std::string text;
    std::vector<int32_t> stack;  // elements that it stands in, the outermost first
    bool ends_outside = false;   // punctuation at its end stands behind them
  };
  struct Mark {
    size_t before;  // the number of a word, or that of all
    std::string text;
    bool has_space_before = false, has_space_behind = false;
    bool is_empty_element = false;  // spaces are as if it were not there
  };
  struct Segment {
    std::string leading, trailing;  // white space
    std::vector<Word> words;
    std::vector<Mark> marks;
    std::vector<int32_t> elements;  // that begin in it
  };
  struct Element {
    std::string open, name;  // the tag, and its name as it is written there
    size_t before = 0;       // the word of its segment that it begins at
  };
  // What stands as it is, then a segment.
  struct Piece {
    std::string literal;
    Segment segment;
  };
  class Reader;

  std::string written(const Segment& segment, const std::string& translation,
                      const Links& links) const;

  std::vector<Piece> pieces_;
  std::string end_;  // behind the last
  std::vector<Element> elements_;
  bool is_html_ = false;
};

}  // namespace heddle
