// How a text is split into the pre-tokens that a subword model sees: the pre-tokenizers of
// tokenizer.json.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "heddle/base/json/json.h"

namespace heddle {

/// A text and the parts of it that are left; nothing is between them but what was removed.
struct PreTokens {
  struct Range {
    size_t begin, end;
    bool is_first;  ///< begins where the whole text began, before it was normalized and split
  };
  std::string text;
  std::vector<Range> ranges;

  std::string_view operator[](size_t i) const {
    return std::string_view(text).substr(ranges[i].begin, ranges[i].end - ranges[i].begin);
  }
};

struct PreTokenizer {
  /// Splits each pre-token further, and may change its text. Empty pre-tokens vanish. Absent: a
  /// text is one pre-token.
  std::function<void(PreTokens& pre_tokens)> split = {};
  bool asks_for_first = false;  ///< for PreTokens::Range::is_first
};

/// What becomes of the places where a text is split.
enum class SplitBehavior { removed, isolated, merged_with_previous, merged_with_next, contiguous };

/// Byte-level BPE: GPT-2's words (unless !use_regex), then a visible character for each byte.
PreTokenizer make_byte_level(bool add_prefix_space, bool use_regex);
/// White space removed, punctuation isolated.
PreTokenizer make_bert_pre_tokenizer();

enum class PrependScheme { always, first, never };

/// The replacement, scheme and split of a Metaspace in its new form ("prepend_scheme") or the old
/// one ("add_prefix_space"). Errors: data if these do not fit each other.
struct MetaspaceOptions {
  std::string sign;
  PrependScheme scheme;
  bool split;
};
MetaspaceOptions read_metaspace(const Json& json, const std::string& source);
/// Spaces become `sign`; one is put in front of each pre-token, or of the one at the text's
/// beginning, that has none; pre-tokens are split before each sign.
PreTokenizer make_metaspace(MetaspaceOptions options);

/// From the "pre_tokenizer" of a tokenizer.json: ByteLevel, Whitespace, WhitespaceSplit,
/// BertPreTokenizer, Metaspace, Punctuation, Digits, Split, CharDelimiterSplit and Sequence of
/// these; one without split() for null. Errors: data, naming what is unknown or wrong.
PreTokenizer read_pre_tokenizer(const Json& json, const std::string& source);

/// Appends the ends of GPT-2's words, in bytes: contractions, and runs of letters, of numbers and
/// of other characters with a space before them or not, and runs of white space without the last
/// character if a word follows. The words lie end to end.
/// Source: Radford et al. 2019, their code:
/// 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
void gpt2_words(std::string_view text, std::vector<size_t>& ends);

}  // namespace heddle
