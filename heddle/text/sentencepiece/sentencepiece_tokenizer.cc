// Tokenizers that are a SentencePiece model.
#include "heddle/text/sentencepiece/sentencepiece_tokenizer.h"

#include <sentencepiece_processor.h>

#include <algorithm>
#include <iterator>

#include "heddle/base/error.h"
#include "heddle/base/files/files.h"
#include "heddle/text/strings/strings.h"

// Exported by the library (0.1.97 and 0.2.0) but absent from its installed headers.
namespace sentencepiece::logging {
void SetMinLogLevel(int level);
}

namespace heddle {

namespace {

constexpr int kFatal = 3;
constexpr int64_t kMaxModelBytes = int64_t{256} << 20;

using Processor = sentencepiece::SentencePieceProcessor;

/// A model alone: its ids as they are, and U+2581 in texts where it is exact.
class WholeModel final : public SubwordModel {
 public:
  WholeModel(Vocabulary vocabulary, std::shared_ptr<const Processor> processor,
             std::shared_ptr<const ModelFacts> facts)
      : SubwordModel(std::move(vocabulary)),
        processor_(std::move(processor)),
        facts_(std::move(facts)) {}

  /// SentencePiece would take U+2581 for a space: a character that falls back to bytes stands in
  /// for it, and its four byte ids are then exchanged for U+2581's three. UTF-8 being
  /// self-synchronising, the four occur nowhere else.
  void encode(std::string_view text, std::vector<int32_t>& ids) const override {
    const bool is_exact = facts_->is_lossless && facts_->has_byte_fallback;
    const bool has_sign = is_exact && text.find(kSpaceSign) != text.npos;
    const std::string other = has_sign ? unused_character(text, facts_->private_code_points) : "";
    if (other.empty()) {
      std::ranges::copy(ids_by(*processor_, text), std::back_inserter(ids));
      return;
    }
    const std::vector<int32_t> own = ids_by(*processor_, replace_all(text, kSpaceSign, other));
    const std::vector<int32_t> from = vocabulary().find_bytes(other).value(),
                               to = vocabulary().find_bytes(kSpaceSign).value();
    for (auto at = own.begin();;) {
      const auto found = std::search(at, own.end(), from.begin(), from.end());
      ids.insert(ids.end(), at, found);
      if (found == own.end()) return;
      ids.insert(ids.end(), to.begin(), to.end());
      at = found + std::ssize(from);
    }
  }
  std::optional<int32_t> unk() const override { return processor_->unk_id(); }

 private:
  std::shared_ptr<const Processor> processor_;
  std::shared_ptr<const ModelFacts> facts_;
};

/// The text of ids; special ones stand as they are, or vanish.
std::string decode(const Processor& processor, std::span<const int32_t> ids, bool skip_special) {
  std::string text;
  const auto append = [&](std::span<const int32_t> part) {
    if (part.empty()) return;
    std::string own;
    const auto status = processor.Decode(std::vector<int>(part.begin(), part.end()), &own);
    check(status.ok(), ErrorKind::data, "tokenizer: cannot decode {} ids: {}", part.size(),
          status.ToString());
    text += own;
  };
  size_t begin = 0;
  for (size_t i = 0; i < ids.size() && !skip_special; ++i) {
    if (!processor.IsControl(ids[i])) continue;
    append(ids.subspan(begin, i - begin));
    text += processor.IdToPiece(ids[i]);
    begin = i + 1;
  }
  append(ids.subspan(begin));
  return text;
}

}  // namespace

std::vector<int32_t> ids_by(const Processor& processor, std::string_view text) {
  std::vector<int> ids;
  const auto status = processor.Encode(text, &ids);
  check(status.ok(), ErrorKind::data, "tokenizer: cannot encode a text of {} bytes: {}",
        text.size(), status.ToString());
  return ids;
}

void silence_sentencepiece() { sentencepiece::logging::SetMinLogLevel(kFatal); }

ModelFacts load_processor(std::string_view bytes, const std::string& name, Processor& processor,
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

Tokenizer Tokenizer::from_bytes(std::string bytes, const std::string& name) {
  const auto processor = std::make_shared<Processor>();
  const auto facts = std::make_shared<const ModelFacts>(load_processor(bytes, name, *processor));
  PipelineDescription d;
  d.kind = "SentencePiece";
  d.special = {.pad = processor->pad_id(),
               .unk = processor->unk_id(),
               .bos = processor->bos_id(),
               .eos = processor->eos_id()};
  std::vector<std::string> tokens;
  for (int id = 0; id < processor->GetPieceSize(); ++id) {
    tokens.push_back(processor->IdToPiece(id));
    if (!processor->IsControl(id)) continue;
    d.added.add(id, {.content = tokens.back(), .normalized = false, .special = true}, name);
  }
  d.added.hide_special();
  d.model =
      std::make_unique<WholeModel>(Vocabulary::of_list(std::move(tokens), name), processor, facts);
  d.decode_ids = [processor](std::span<const int32_t> ids, bool skip_special) {
    return decode(*processor, ids, skip_special);
  };
  d.beside = [processor, facts] { return files_for_transformers(*processor, *facts); };
  return make_tokenizer(std::move(d), {{kSentencePieceName, std::move(bytes)}});
}

Tokenizer load_sentencepiece(const std::string& path) {
  check(file_size(path) <= kMaxModelBytes, ErrorKind::data,
        "{}: {} bytes are too many for a SentencePiece model (at most {})", path, file_size(path),
        kMaxModelBytes);
  return Tokenizer::from_bytes(read_file(path), path);
}

}  // namespace heddle
