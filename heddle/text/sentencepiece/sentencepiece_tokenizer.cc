// Tokenizers that are a SentencePiece model.
#include "heddle/text/sentencepiece/sentencepiece_tokenizer.h"

#include <sentencepiece_processor.h>

#include <algorithm>
#include <array>

#include "heddle/base/error.h"
#include "heddle/base/files/files.h"
#include "heddle/text/pipeline/pipeline.h"
#include "heddle/text/sentencepiece/sentencepiece_tokenizer.h"
#include "heddle/text/strings/strings.h"

// Exported by the library (0.1.97 and 0.2.0) but absent from its installed headers.
namespace sentencepiece::logging {
void SetMinLogLevel(int level);
}

namespace heddle {

namespace {

constexpr int kFatal = 3;
constexpr int64_t kMaxModelBytes = int64_t{256} << 20;

class SentencePieceTokenizer final : public Tokenizer::Impl {
 public:
  SentencePieceTokenizer(std::string bytes, const std::string& name);

  std::vector<int32_t> encode(std::string_view text) const override {
    const bool is_exact = facts_.is_lossless && facts_.has_byte_fallback;
    return is_exact && text.find(kSpaceSign) != text.npos ? encode_space_sign(text) : ids_of(text);
  }
  std::string decode(std::span<const int32_t> ids, const DecodeOptions& options) const override;
  int64_t vocab_size() const override { return facts_.pieces; }
  std::string token(int32_t id) const override { return processor_.IdToPiece(id); }
  int32_t token_id(std::string_view token) const override { return processor_.PieceToId(token); }
  bool is_special(int32_t id) const override { return processor_.IsControl(id); }
  std::vector<TokenizerFile> beside() const override {
    return files_for_transformers(processor_, facts_);
  }

 private:
  std::vector<int32_t> ids_of(std::string_view text) const;
  std::vector<int32_t> encode_space_sign(std::string_view text) const;
  void append_text(std::span<const int32_t> ids, std::string& text) const;

  sentencepiece::SentencePieceProcessor processor_;
  ModelFacts facts_;
  std::array<int32_t, 256> byte_ids_{};  // ids of <0x00> .. <0xFF>, with byte fallback
};

SentencePieceTokenizer::SentencePieceTokenizer(std::string bytes, const std::string& name)
    : facts_(load_processor(bytes, name, processor_)) {
  kind = "SentencePiece";
  fingerprint = checksum(bytes);
  files = {{"tokenizer.model", std::move(bytes)}};
  special.pad = processor_.pad_id();
  special.unk = processor_.unk_id();
  special.bos = processor_.bos_id();
  special.eos = processor_.eos_id();
  if (facts_.has_byte_fallback) {
    for (int b = 0; b < 256; ++b) {
      byte_ids_[b] = processor_.PieceToId(fmt::format("<0x{:02X}>", b));
    }
  }
}

std::vector<int32_t> SentencePieceTokenizer::ids_of(std::string_view text) const {
  std::vector<int> ids;
  const auto status = processor_.Encode(text, &ids);
  check(status.ok(), ErrorKind::data, "tokenizer: cannot encode a text of {} bytes: {}",
        text.size(), status.ToString());
  return ids;
}

/// Encodes a text with U+2581 in it, which SentencePiece would take for a space: a character that
/// falls back to bytes stands in for it, and its four byte ids are then exchanged for U+2581's
/// three. UTF-8 being self-synchronising, the four occur nowhere else.
std::vector<int32_t> SentencePieceTokenizer::encode_space_sign(std::string_view text) const {
  const std::string other = unused_character(text, facts_.private_code_points);
  if (other.empty()) return ids_of(text);
  const std::vector<int32_t> ids = ids_of(replace_all(text, kSpaceSign, other));
  const auto byte_id = [&](char c) { return byte_ids_[static_cast<unsigned char>(c)]; };
  std::array<int32_t, 4> from;
  std::ranges::transform(other, from.begin(), byte_id);
  std::vector<int32_t> result;
  for (auto at = ids.begin();;) {
    const auto found = std::search(at, ids.end(), from.begin(), from.end());
    result.insert(result.end(), at, found);
    if (found == ids.end()) return result;
    std::ranges::transform(kSpaceSign, std::back_inserter(result), byte_id);
    at = found + from.size();
  }
}

void SentencePieceTokenizer::append_text(std::span<const int32_t> ids, std::string& text) const {
  if (ids.empty()) return;
  std::string part;
  const auto status = processor_.Decode(std::vector<int>(ids.begin(), ids.end()), &part);
  check(status.ok(), ErrorKind::data, "tokenizer: cannot decode {} ids: {}", ids.size(),
        status.ToString());
  text += part;
}

std::string SentencePieceTokenizer::decode(std::span<const int32_t> ids,
                                           const DecodeOptions& options) const {
  std::string text;
  size_t begin = 0;
  for (size_t i = 0; i < ids.size() && !options.skip_special; ++i) {
    if (!is_special(ids[i])) continue;
    append_text(ids.subspan(begin, i - begin), text);
    text += token(ids[i]);
    begin = i + 1;
  }
  append_text(ids.subspan(begin), text);
  return text;
}

}  // namespace

void silence_sentencepiece() { sentencepiece::logging::SetMinLogLevel(kFatal); }

ModelFacts load_processor(std::string_view bytes, const std::string& name,
                          sentencepiece::SentencePieceProcessor& processor,
                          std::string_view fields) {
  ModelFacts facts = check_sentencepiece_model(bytes, name);
  silence_sentencepiece();
  const auto status = fields.empty()
                          ? processor.LoadFromSerializedProto(bytes)
                          : processor.LoadFromSerializedProto(std::string(bytes).append(fields));
  check(status.ok(), ErrorKind::data, "{}: SentencePiece refuses the model: {}", name,
        status.ToString());
  return facts;
}

Tokenizer sentencepiece_tokenizer(std::string bytes, const std::string& name) {
  return Tokenizer(std::make_shared<SentencePieceTokenizer>(std::move(bytes), name));
}

Tokenizer load_sentencepiece(const std::string& path) {
  check(file_size(path) <= kMaxModelBytes, ErrorKind::data,
        "{}: {} bytes are too many for a SentencePiece model (at most {})", path, file_size(path),
        kMaxModelBytes);
  return sentencepiece_tokenizer(read_file(path), path);
}

}  // namespace heddle
