// A tokenizer made of parts, as Hugging Face's tokenizer.json describes it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "heddle/base/json/json.h"
#include "heddle/text/subwords/subword_model.h"
#include "heddle/text/tokenizer.h"

namespace heddle {

// --- special ids, and what stands around texts ---

/// -1 where there is none.
struct SpecialIds {
  int32_t pad = -1, unk = -1, bos = -1, eos = -1, cls = -1, sep = -1, mask = -1;
};

/// What stands around the ids of one text, or of two.
struct Template {
  struct Item {
    int text = -1;  ///< 0 or 1: the ids of that text; -1: `ids`
    int32_t type = 0;
    std::vector<int32_t> ids = {};
  };
  std::vector<Item> single = {{.text = 0}}, pair = {{.text = 0}, {.text = 1, .type = 1}};
};

// --- what happens to a text before it is split ---

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

/// Checks a precompiled character map (size of the trie, double array, replacement strings):
/// every transition and value lies inside, there is no cycle, at most 32 rules match one prefix,
/// and replacements are short valid UTF-8. Returns what is wrong, empty if nothing is.
/// Source: Darts-clone's double array; SentencePiece's Normalizer.
std::string charsmap_fault(std::string_view charsmap);

/// From the "normalizer" of a tokenizer.json: BertNormalizer, NFC, NFD, NFKC, NFKD, Lowercase,
/// Strip, StripAccents, Replace, Prepend, Precompiled, Nmt, ByteLevel and Sequence of these;
/// nullptr for null. Errors: data, naming what is unknown or wrong, with `source` in front.
std::unique_ptr<Normalizer> read_normalizer(const Json& json, const std::string& source);

// --- how it is split into the pre-tokens that a subword model sees ---

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

// --- from tokens back to text ---

/// Changes the tokens, which are then joined without anything between them.
using TokenDecoder = std::function<void(std::vector<std::string>& tokens)>;

/// Bytes of byte-level BPE; U+FFFD where they form no character.
void decode_byte_level(std::vector<std::string>& tokens);
/// Spaces between tokens that do not begin with the prefix, which is taken away.
TokenDecoder make_wordpiece_decoder(std::string prefix, bool cleanup);

/// From the "decoder" of a tokenizer.json: ByteLevel, WordPiece, Metaspace, BPEDecoder,
/// ByteFallback, Fuse, Strip, Replace and Sequence of these; none for null, which joins the
/// tokens with spaces. Errors: data, naming what is unknown or wrong.
TokenDecoder read_token_decoder(const Json& json, const std::string& source);

// --- tokens that are found in a text before anything else is done with it ---

struct AddedToken {
  std::string content;
  bool single_word = false;  ///< not beside letters or digits
  bool lstrip = false;       ///< takes the white space before it
  bool rstrip = false;       ///< and behind it
  bool normalized = true;    ///< is looked for in the normalized text, itself normalized
  bool special = false;      ///< decoding may leave it out
};

/// {"content": .., "special": ..}, or its content alone, which is then a special token.
/// Errors: data if it has no content or an empty one.
AddedToken read_added_token(const Json& json, const std::string& source);

class AddedTokens {
 public:
  /// Errors: data if the id has another token, or it is longer than kMaxTokenBytes.
  void add(int32_t id, AddedToken token, const std::string& source);
  /// Special tokens are not found in texts then: their names are text as any other.
  void hide_special() { hides_special_ = true; }
  /// To be called once, after the last add(). Tokens that are looked for in normalized text then
  /// have normalized contents, which decoding writes; find() knows what add() got too.
  void prepare(const Normalizer* normalizer);

  /// Calls f(part, id) for the parts of a text; id is -1 for what is between the tokens. Tokens
  /// that are looked for in normalized text are found if `is_normalized`, else the others; the
  /// longest of those that begin at a place is taken. A token in the white space that the one
  /// before it took is found there nevertheless, unless it takes the space before it too.
  void split(std::string_view text, bool is_normalized,
             const std::function<void(std::string_view, int32_t)>& f) const;
  /// The same of special tokens that hide_special() has taken out of split().
  void split_hidden(std::string_view text,
                    const std::function<void(std::string_view, int32_t)>& f) const;

  /// The same, but special tokens are found as they were given to add() alone, never as what
  /// normalizing makes of other text.
  void split_given(std::string_view text, bool is_normalized,
                   const std::function<void(std::string_view, int32_t)>& f) const;
  /// Whether there are special tokens that are looked for in normalized text.
  bool has_normalized_special() const { return !normalized_names_.empty(); }

  /// The text with `mark` behind the first character of each name of a special token, and at its
  /// end if such a name may begin there, or once the text is normalized holds such a name.
  std::string broken(std::string_view text, std::string_view mark,
                     const Normalizer* normalizer) const;

  /// nullptr if the id is that of no added token.
  const AddedToken* find(int32_t id) const;
  std::optional<int32_t> find(std::string_view content) const;
  bool is_special(int32_t id) const;
  /// The largest id; -1 if there is none.
  int32_t largest_id() const { return largest_; }

 private:
  std::unordered_map<int32_t, AddedToken> tokens_;
  StringMap<int32_t> ids_;
  using Found = std::function<void(std::string_view, int32_t)>;
  void split(std::string_view text, const TokenTrie& trie, const Found& f) const;

  TokenTrie plain_, normalized_, hidden_;
  TokenTrie special_;               // names of special tokens, as they were given
  std::vector<std::string> names_;  // the same
  TokenTrie given_;                 // as plain_, and special_
  TokenTrie normalized_text_;       // as normalized_, but special ones
  TokenTrie normalized_special_;
  std::vector<std::string> normalized_names_;  // the same
  bool hides_special_ = false;
  int32_t largest_ = -1;
};

// --- all of it ---

/// A tokenizer before it is made, so that other files may add to it: what a text goes through, from
/// above; absent parts do nothing.
struct PipelineDescription {
  std::string kind;  ///< "byte-level BPE", "WordPiece", ...
  AddedTokens added;
  std::unique_ptr<Normalizer> normalizer;
  PreTokenizer pre_tokenizer;
  std::unique_ptr<SubwordModel> model;
  TokenDecoder decoder;   ///< absent: tokens are joined with spaces
  bool clean_up = false;  ///< whether decode() cleans up unless told
  /// In place of all that, where a text is not the tokens' alone.
  std::function<std::string(std::span<const int32_t> ids, bool skip_special)> decode_ids;
  /// What save_folder() puts beside the files, so that they are read so again, and by transformers;
  /// part of no fingerprint. Absent: nothing.
  std::function<std::vector<TokenizerFile>()> beside;
  Template around;
  SpecialIds special;  ///< those that the parts name by their use
};

/// The tokenizer of a description that is complete but for `added.prepare()`, read from these
/// files.
Tokenizer make_tokenizer(PipelineDescription description, std::vector<TokenizerFile> files);

// --- reading it from tokenizer.json ---

/// "truncation" and "padding" of the file are not followed: whoever asks for ids cuts them.
/// Errors: data, naming `source` and the component, for anything broken, missing or unknown.
PipelineDescription read_tokenizer_json(const Json& json, const std::string& source);

/// Lines of merges.txt: two tokens with a space between; the first line may be a comment
/// ("#version"). Errors: data, with the line.
std::vector<Merge> merges_of_lines(std::string_view text, const std::string& source);

/// [CLS] A [SEP], [CLS] A [SEP] B [SEP] with the type 1 from B on.
Template bert_template(int32_t cls, int32_t sep);
/// A </s>, A B </s>.
Template eos_template(int32_t eos);
/// <s> A </s>, <s> A </s> </s> B </s>, all of type 0.
Template roberta_template(int32_t cls, int32_t sep);

}  // namespace heddle
