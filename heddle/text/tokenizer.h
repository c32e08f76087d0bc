// Subword tokenizer: text to token ids and back, by a standard SentencePiece model.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace heddle {

/// SentencePiece's sign for a space at the front of a word's first piece: U+2581.
inline constexpr std::string_view kSpaceSign = "\xE2\x96\x81";

/// A SentencePiece model (BPE or unigram). Copies share the model; all methods are const and may be
/// called from several threads at once. Deterministic: no sampling.
///
/// A model trained by train_tokenizer() with its defaults (identity normalisation, byte fallback)
/// is exact: decode(encode(text)) == text for every valid UTF-8 text, runs of spaces, control
/// characters and zero bytes included. U+2581, SentencePiece's own sign for a space, is exact too:
/// encode() writes it as its three bytes, where `spm_encode` would make a space of it; that is the
/// one text for which the ids differ from SentencePiece's, and only for such models.
/// Not exact are models with a normalisation (NFKC, lower case), with `remove_extra_whitespaces`,
/// or without byte fallback (unknown characters become unk_id()).
/// Source: Kudo & Richardson 2018, "SentencePiece".
class Tokenizer {
 public:
  /// Reads a .model file. Errors: data, naming path and byte, if it is missing, empty, cut short,
  /// altered so that it makes no sense, or refused by SentencePiece.
  static Tokenizer load(const std::string& path);
  /// The same from the bytes of such a file; `name` stands for the path in messages.
  static Tokenizer from_bytes(std::string bytes, const std::string& name = "tokenizer");

  /// Ids of the text, without special ids at its ends. Errors: data if it is not UTF-8.
  std::vector<int32_t> encode(std::string_view text) const;

  /// Text of the ids; special ids (pad, bos, eos) give nothing, unk_id() gives " ⁇ " unless the
  /// model says otherwise, bytes that form no character give U+FFFD.
  /// Errors: data if an id is not in [0, vocab_size).
  std::string decode(std::span<const int32_t> ids) const;

  int64_t vocab_size() const;
  /// Special ids; -1 where the model has none. train_tokenizer() gives 0, 1, 2, 3.
  int32_t pad_id() const;
  int32_t unk_id() const;
  int32_t bos_id() const;
  int32_t eos_id() const;

  /// The piece of an id, with U+2581 for a space. Errors: data if the id is not in the vocabulary.
  std::string piece(int32_t id) const;
  /// The id of a piece, unk_id() if there is none.
  int32_t piece_id(std::string_view piece) const;

  /// Content hash of the model file (16 hex digits): equal if and only if, save for chance, the
  /// files are. What caches and checkpoints compare.
  const std::string& fingerprint() const;

  /// The bytes of the .model file, as they were read or trained.
  const std::string& model_bytes() const;
  /// Writes them, atomically. Errors: system.
  void save(const std::string& path) const;

 private:
  struct Impl;
  explicit Tokenizer(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<const Impl> impl_;
};

}  // namespace heddle
