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

/// Finds sentences by Unicode's rules, with the abbreviations of a language ("Mr. Brown", "z.B.")
/// as CLDR lists them; the end of a line ends a sentence too. Source: Unicode Standard Annex #29,
/// section 5; ICU.
class SentenceSplitter {
 public:
  /// language: "en"; one that is not known has the rules alone.
  explicit SentenceSplitter(const std::string& language = "");
  ~SentenceSplitter();
  SentenceSplitter(const SentenceSplitter&) = delete;
  SentenceSplitter& operator=(const SentenceSplitter&) = delete;

  /// The sentences in order, without the white space around them, which is all that no part holds;
  /// none of a blank text. text: UTF-8
  std::vector<TextPart> split(std::string_view text) const;

 private:
  struct Rules;
  std::unique_ptr<Rules> rules_;
};

}  // namespace heddle
