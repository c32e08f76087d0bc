// Text to token ids and back, by whatever a model's folder holds.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace heddle {

/// SentencePiece's sign for a space at the front of a word's first token: U+2581.
inline constexpr std::string_view kSpaceSign = "\xE2\x96\x81";

/// A file that a tokenizer was read from, and its bytes.
struct TokenizerFile {
  std::string name;  ///< without its folder
  std::string bytes;
  friend bool operator==(const TokenizerFile&, const TokenizerFile&) = default;
};

/// Ids with the special ones around them, and to which part each belongs (token_type_ids).
struct Encoding {
  std::vector<int32_t> ids;
  std::vector<int32_t> types;  ///< as many
};

struct DecodeOptions {
  bool skip_special = true;  ///< special ids give nothing; false: their tokens
  /// Takes spaces before punctuation and contractions away (clean_up_tokenization_spaces); absent:
  /// as the files say, and where they say nothing it does not, as in transformers 5. Of BPE it
  /// would damage the text, so files cannot ask for it there.
  std::optional<bool> clean_up = {};
};

/// One of: a SentencePiece model; a tokenizer.json (byte-level BPE, BPE with byte fallback,
/// WordPiece, unigram, word level); vocab.json with merges.txt; vocab.txt. Copies share it; all
/// methods are const and may be called from several threads at once. Deterministic: no sampling.
///
/// A SentencePiece model trained by train_tokenizer() with its defaults (identity normalisation,
/// byte fallback) is exact: decode(encode(text)) == text for every valid UTF-8 text, runs of
/// spaces, control characters and zero bytes included. U+2581, SentencePiece's own sign for a
/// space, is exact too: encode() writes it as its three bytes, where `spm_encode` would make a
/// space of it; that is the one text for which the ids differ from SentencePiece's, and only for
/// such models. Byte-level BPE without a normalizer is exact too, save for texts that hold the name
/// of an added token. The others are not. Source: Kudo & Richardson 2018, "SentencePiece"; Radford
/// et al. 2019 (byte-level BPE); Hugging Face's `tokenizers`, whose ids and texts these are.
class Tokenizer {
 public:
  class Impl;
  explicit Tokenizer(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}

  /// Reads what the path names. A folder: its tokenizer.json, unless tokenizer_config.json says
  /// that it is tokenizer.model in other words; else vocab.json and merges.txt (also encoder.json
  /// and vocab.bpe); else vocab.txt; else spiece.model, tokenizer.model or sentencepiece.bpe.model;
  /// with tokenizer_config.json, special_tokens_map.json and added_tokens.json, and config.json's
  /// model_type where the others leave questions. A .json or .txt file: the same, from that file.
  /// Any other file: a SentencePiece model. Errors: data, naming the file and what is wrong, if it
  /// is missing, cut short, altered so that it makes no sense, or asks for something unknown.
  static Tokenizer load(const std::string& path);
  /// Of the bytes of a SentencePiece model; `name` stands for the path in messages.
  static Tokenizer from_bytes(std::string bytes, const std::string& name = "tokenizer");

  /// Ids of the text, without special ids at its ends. Where the tokenizer is no plain
  /// SentencePiece model, the names of added tokens in the text ("[MASK]") are these tokens.
  /// Errors: data if it is not UTF-8, has 2 GiB or more, or is made to take all memory or time.
  std::vector<int32_t> encode(std::string_view text) const;

  /// Ids of a text that a template wrote: names of special tokens are these tokens, whatever the
  /// tokenizer, but those that hide_special() has hidden. Errors: the same.
  std::vector<int32_t> encode_rendered(std::string_view text) const;
  /// The text with a mark (U+FDD0, a noncharacter, which encode_rendered() passes over) within each
  /// name of a special token, and behind what such a name may begin with at its end.
  std::string hide_special(std::string_view text) const;

  /// The ids of a text, or of two, with the special ids that the files put around them.
  /// with_special(encode(text)) may cut in between; special_count() says what is added.
  /// `language`: the token of one of languages(), in place of that which the files put there.
  Encoding with_special(std::span<const int32_t> ids, int32_t language = -1) const;
  Encoding with_special(std::span<const int32_t> first, std::span<const int32_t> second) const;
  int64_t special_count(bool is_pair = false) const;

  /// Text of the ids. Of a SentencePiece model unk_id() gives " ⁇ " unless the model says
  /// otherwise; bytes that form no character give U+FFFD; an id from vocab_size() on, which a model
  /// with a padded vocabulary has, gives nothing. Errors: data if an id is negative.
  std::string decode(std::span<const int32_t> ids, const DecodeOptions& options = {}) const;

  /// One more than the largest id.
  int64_t vocab_size() const;
  /// Special ids; -1 where there is none. train_tokenizer() gives 0, 1, 2, 3.
  int32_t pad_id() const;
  int32_t unk_id() const;
  int32_t bos_id() const;
  int32_t eos_id() const;
  int32_t cls_id() const;
  int32_t sep_id() const;
  int32_t mask_id() const;
  /// Whether decode() leaves it out.
  bool is_special(int32_t id) const;

  /// The languages that texts may be marked with, by name, and their tokens: special ones that read
  /// en_XX, eng_Latn or __en__ ("en"). Of most tokenizers none.
  std::vector<std::pair<std::string, int32_t>> languages() const;

  /// The token of an id as the vocabulary spells it (U+2581 for a space, or Ġ in byte-level BPE);
  /// empty for an id from vocab_size() on. Errors: data if the id is negative.
  std::string token(int32_t id) const;
  /// The id of a token, unk_id() if there is none.
  int32_t token_id(std::string_view token) const;

  /// In words: "SentencePiece", "byte-level BPE", "WordPiece", ...
  const std::string& kind() const;
  /// Content hash of its files (16 hex digits): equal if and only if, save for chance, the files
  /// are; of a SentencePiece model without a family, of that alone. What caches and checkpoints
  /// compare.
  const std::string& fingerprint() const;

  /// The files, as they were read or trained, but that tokenizer_config.json says the class of the
  /// tokenizer where model_type of config.json, which is none of them, decided it. That of
  /// SentencePiece models is "tokenizer.model".
  const std::vector<TokenizerFile>& files() const;
  /// The bytes of a tokenizer of one file.
  const std::string& model_bytes() const;
  /// Writes a tokenizer of one file, atomically. Errors: usage if it has several; system.
  void save(const std::string& path) const;
  /// Writes the files to a folder that exists, each atomically, so that load() of the folder gives
  /// this tokenizer, whatever config.json is in it. Beside a SentencePiece model without a family
  /// stands a tokenizer.json, see heddle/text/sentencepiece/sentencepiece_tokenizer.h, and beside
  /// WordPiece vocabularies and characters their class, so that transformers gives the same ids and
  /// texts. Errors: system.
  void save_folder(const std::string& folder) const;

 private:
  std::shared_ptr<const Impl> impl_;
};

/// The tokenizer of a folder; nothing if none of its files is there. Errors: see Tokenizer::load().
std::optional<Tokenizer> find_tokenizer(const std::string& folder);

/// Those of a translator's folder.
struct TokenizerPair {
  Tokenizer source;
  std::optional<Tokenizer> target = {};  ///< absent: it is the source's
};
std::optional<TokenizerPair> find_tokenizer_pair(const std::string& folder);

/// From a tokenizer.json or a vocab.txt that stands nowhere.
Tokenizer tokenizer_of_file(TokenizerFile file);

}  // namespace heddle
