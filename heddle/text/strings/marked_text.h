// Texts with tags, or with spans that are to survive, as plain texts to translate, and back.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "heddle/text/strings/sentences.h"

namespace heddle {

/// What a translation is to keep beside words: tags go with the words that they stand around, by
/// word alignment; what has no words (an image, a placeholder) stays before the word that it stood
/// before. Words are what spaces part; a tag inside one stands around all of it.
/// After bergamot-translator's rules for HTML (2022), with words in the place of tokens.
class MarkedText {
 public:
  /// Pairs of words, source and target, from 0.
  using Links = std::vector<std::pair<int32_t, int32_t>>;
  class Reader;  // puts one together

  /// Blocks (paragraphs, cells, lines ended by <br>) are texts of their own; comments, scripts,
  /// styles, <code> and elements with translate="no" or of the class notranslate stay as they are.
  /// What is no tag is text.
  static MarkedText of_html(std::string_view html);
  /// No name means anything. An element among words goes with them; one in an element (or at the
  /// outside) that has elements alone is a border of texts. Comments, processing instructions,
  /// document types, entities that XML does not name and elements with translate="no" stay as they
  /// are; CDATA is text. What with() writes is well-formed.
  /// Errors: data for tags that do not close each other, or are more than 64 deep; for what begins
  /// like a tag or an entity and is none.
  static MarkedText of_xml(std::string_view xml);
  /// Each occurrence of one of `kept` stays as it is, the longest first.
  static MarkedText of_text(std::string_view text, std::span<const std::string> kept);

  /// Cuts the texts into sentences, with elements that go on from one to the next left whole. The
  /// ends of lines are borders of what has no tags alone.
  void split(const SentenceSplitter& splitter);
  /// The plain texts, or their sentences, words parted by one space; may be none.
  std::vector<std::string> texts() const;
  size_t count() const;  ///< of texts()
  /// The whole with each of texts() translated. links: of each    Errors: none: words that are not
  /// there are passed over.
  std::string with(std::span<const std::string> translations, std::span<const Links> links) const;

 private:
  struct Word {
    std::string text;
    std::vector<int32_t> stack;  // elements that it stands in, the outermost first
    bool ends_outside = false;   // punctuation at its end stands behind them
    std::string space = " ";     // white space before it, where it begins a sentence
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
    std::vector<size_t> sentences = {0};  // the word that each begins with
    std::vector<Mark> marks;
    std::vector<int32_t> elements;  // that begin in it, in that order
    size_t end_of_sentence(size_t i) const {
      return i + 1 < sentences.size() ? sentences[i + 1] : words.size();
    }
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
  // A word of a translation.
  struct Written {
    std::string text;
    size_t from = 0;               // the word of the segment that it came from
    std::string_view space = " ";  // that parts it from what stands before it
  };
  void split(Segment& segment, const SentenceSplitter& splitter);
  static std::vector<Written> written_words(const Segment& segment,
                                            std::span<const std::string> translations,
                                            std::span<const Links> links);
  std::vector<Mark> marks_of(const Segment& segment, std::span<const Written> words) const;
  std::string written(const Segment& segment, std::span<const Written> words) const;

  std::vector<Piece> pieces_;
  std::string end_;  // behind the last
  std::vector<Element> elements_;
  bool has_tags_ = false;
};

}  // namespace heddle
