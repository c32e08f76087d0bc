// What happens to a text before it is split: the normalizers of tokenizer.json.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "heddle/base/json/json.h"

namespace heddle {

/// A function of a text and of the most bytes that it may become: it stops as soon as it sees more,
/// or else is known to make a few of each.
class Normalizer {
 public:
  using Apply = std::function<std::string(std::string_view text, size_t most)>;
  using Start = std::function<bool(std::string_view text)>;
  /// Without `keeps_start` one that sees one character at a time.
  explicit Normalizer(Apply apply, Start keeps_start = {})
      : apply_(std::move(apply)), keeps_start_(std::move(keeps_start)) {}

  /// Errors: data if the text grows beyond most_bytes().
  std::string operator()(std::string_view text) const;
  /// A step of it.
  std::string apply(std::string_view text, size_t most) const { return apply_(text, most); }
  /// Whether what a text begins with comes from its own beginning, which has not been taken away.
  bool keeps_start(std::string_view text) const;

 private:
  Apply apply_;
  Start keeps_start_;
};

struct BertNormalizerOptions {
  bool clean_text = true;            ///< control characters vanish, white space becomes spaces
  bool handle_chinese_chars = true;  ///< spaces around each Chinese character
  bool strip_accents = true;
  bool lowercase = true;
};
std::unique_ptr<Normalizer> make_bert_normalizer(const BertNormalizerOptions& options);

/// SentencePiece's normalisation by a table of replacements, `charsmap` as in its model files, over
/// grapheme clusters as `tokenizers` walks them. Errors: data if the table is damaged.
std::unique_ptr<Normalizer> make_charsmap_normalizer(std::string charsmap,
                                                     const std::string& source);

/// From the "normalizer" of a tokenizer.json: BertNormalizer, NFC, NFD, NFKC, NFKD, Lowercase,
/// Strip, StripAccents, Replace, Prepend, Precompiled, Nmt, ByteLevel and Sequence of these;
/// nullptr for null. Errors: data, naming what is unknown or wrong, with `source` in front.
std::unique_ptr<Normalizer> read_normalizer(const Json& json, const std::string& source);

}  // namespace heddle
