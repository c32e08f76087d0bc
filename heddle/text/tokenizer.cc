// Subword tokenizer: text to token ids and back, by a standard SentencePiece model.
#include "heddle/text/tokenizer.h"

#include <sentencepiece_processor.h>

#include <algorithm>
#include <array>

#include "heddle/base/error.h"
#include "heddle/base/files.h"
#include "heddle/text/model_check.h"
#include "heddle/text/sentencepiece_log.h"
#include "heddle/text/utf8.h"

// Exported by the library (0.1.97 and 0.2.0) but absent from its installed headers.
namespace sentencepiece::logging {
void SetMinLogLevel(int level);
}

namespace heddle {

namespace {

constexpr int kFatal = 3;
constexpr int64_t kMaxModelBytes = int64_t{256} << 20;

std::string utf8_of_four(char32_t c) {  // c >= U+10000
  return {static_cast<char>(0xF0 | (c >> 18)), static_cast<char>(0x80 | ((c >> 12) & 0x3F)),
          static_cast<char>(0x80 | ((c >> 6) & 0x3F)), static_cast<char>(0x80 | (c & 0x3F))};
}

std::string replace_all(std::string_view text, std::string_view from, std::string_view to) {
  std::string result;
  for (size_t at = 0;;) {
    const size_t found = text.find(from, at);
    result.append(text.substr(at, found - at));
    if (found == text.npos) return result;
    result.append(to);
    at = found + from.size();
  }
}

}  // namespace

void silence_sentencepiece() { sentencepiece::logging::SetMinLogLevel(kFatal); }

struct Tokenizer::Impl {
  std::string bytes;
  std::string fingerprint;
  ModelFacts facts;
  sentencepiece::SentencePieceProcessor processor;
  int32_t pad = -1, unk = -1, bos = -1, eos = -1;
  std::array<int32_t, 256> byte_ids{};  // ids of <0x00> .. <0xFF>, with byte fallback

  std::vector<int32_t> encode(std::string_view text) const {
    std::vector<int> ids;
    const auto status = processor.Encode(text, &ids);
    check(status.ok(), ErrorKind::data, "tokenizer: cannot encode a text of {} bytes: {}",
          text.size(), status.ToString());
    return ids;
  }

  /// A four-byte character that is in no piece and not in the text; empty if there is none.
  std::string stand_in(std::string_view text) const {
    for (char32_t c = 0x10FFFD; c >= 0x100000; --c) {
      if (std::ranges::binary_search(facts.private_code_points, c)) continue;
      std::string candidate = utf8_of_four(c);
      if (text.find(candidate) == text.npos) return candidate;
    }
    return "";
  }

  /// Encodes a text with U+2581 in it, which SentencePiece would take for a space: a character that
  /// falls back to bytes stands in for it, and its four byte ids are then exchanged for U+2581's
  /// three. UTF-8 being self-synchronising, the four occur nowhere else.
  std::vector<int32_t> encode_space_sign(std::string_view text) const {
    const std::string other = stand_in(text);
    if (other.empty()) return encode(text);
    const std::vector<int32_t> ids = encode(replace_all(text, kSpaceSign, other));
    const auto byte_id = [&](char c) { return byte_ids[static_cast<unsigned char>(c)]; };
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

  void check_id(int32_t id) const {
    check(id >= 0 && id < facts.pieces, ErrorKind::data,
          "tokenizer: id {} is not in the vocabulary, whose ids are 0 to {}", id, facts.pieces - 1);
  }
};

Tokenizer Tokenizer::load(const std::string& path) {
  check(file_size(path) <= kMaxModelBytes, ErrorKind::data,
        "{}: {} bytes are too many for a SentencePiece model (at most {})", path, file_size(path),
        kMaxModelBytes);
  return from_bytes(read_file(path), path);
}

Tokenizer Tokenizer::from_bytes(std::string bytes, const std::string& name) {
  auto impl = std::make_shared<Impl>();
  impl->facts = check_sentencepiece_model(bytes, name);
  silence_sentencepiece();
  const auto status = impl->processor.LoadFromSerializedProto(bytes);
  check(status.ok(), ErrorKind::data, "{}: SentencePiece refuses the model: {}", name,
        status.ToString());
  impl->fingerprint = checksum(bytes);
  impl->bytes = std::move(bytes);
  impl->pad = impl->processor.pad_id();
  impl->unk = impl->processor.unk_id();
  impl->bos = impl->processor.bos_id();
  impl->eos = impl->processor.eos_id();
  if (impl->facts.has_byte_fallback) {
    for (int b = 0; b < 256; ++b) {
      impl->byte_ids[b] = impl->processor.PieceToId(fmt::format("<0x{:02X}>", b));
    }
  }
  return Tokenizer(std::move(impl));
}

std::vector<int32_t> Tokenizer::encode(std::string_view text) const {
  if (const auto at = first_invalid_utf8(text)) {
    fail(ErrorKind::data, "tokenizer: the text is not UTF-8: byte 0x{:02x} at offset {}",
         static_cast<unsigned char>(text[*at]), *at);
  }
  const bool is_exact = impl_->facts.is_lossless && impl_->facts.has_byte_fallback;
  if (is_exact && text.find(kSpaceSign) != text.npos) return impl_->encode_space_sign(text);
  return impl_->encode(text);
}

std::string Tokenizer::decode(std::span<const int32_t> ids) const {
  for (const int32_t id : ids) impl_->check_id(id);
  std::string text;
  const auto status = impl_->processor.Decode(std::vector<int>(ids.begin(), ids.end()), &text);
  check(status.ok(), ErrorKind::data, "tokenizer: cannot decode {} ids: {}", ids.size(),
        status.ToString());
  return text;
}

int64_t Tokenizer::vocab_size() const { return impl_->facts.pieces; }
int32_t Tokenizer::pad_id() const { return impl_->pad; }
int32_t Tokenizer::unk_id() const { return impl_->unk; }
int32_t Tokenizer::bos_id() const { return impl_->bos; }
int32_t Tokenizer::eos_id() const { return impl_->eos; }

std::string Tokenizer::piece(int32_t id) const {
  impl_->check_id(id);
  return impl_->processor.IdToPiece(id);
}

int32_t Tokenizer::piece_id(std::string_view piece) const {
  return piece.empty() ? unk_id() : impl_->processor.PieceToId(piece);
}

const std::string& Tokenizer::fingerprint() const { return impl_->fingerprint; }
const std::string& Tokenizer::model_bytes() const { return impl_->bytes; }
void Tokenizer::save(const std::string& path) const { write_file_atomic(path, impl_->bytes); }

}  // namespace heddle
