// Where the sentences of a text begin and end.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace heddle {

/// Bytes [begin, end) of a text.
struct TextPart {
  size_t begin = 0, end = 0;
  friend bool operator==(const TextPart&, const TextPart&) = default;
};

/// The text with a space for each byte of the end of a line.
std::string without_lines(std::string_view text);

/// Finds sentences by Unicode's rules, with the abbreviations of a language ("Mr. Brown", "z.B.")
/// as CLDR lists them. Source: Unicode Standard Annex #29, section 5; ICU.
class SentenceSplitter {
 public:
  /// language: "en"; one that is not known has the rules alone.
  explicit SentenceSplitter(const std::string& language = "");
  ~SentenceSplitter();
  SentenceSplitter(const SentenceSplitter&) = delete;
  SentenceSplitter& operator=(const SentenceSplitter&) = delete;

  /// The sentences in order, without the white space around them, which is all that no part holds;
  /// none of a blank text. text: UTF-8; ends_at_lines: whether the end of a line ends a sentence
  /// too, or is a space
  std::vector<TextPart> split(std::string_view text, bool ends_at_lines = true) const;

 private:
  struct Rules;
  std::unique_ptr<Rules> rules_;
};

}  // namespace heddle
