// Text to token ids and back: what all kinds of tokenizers share.
#include "heddle/text/tokenizer.h"

#include "heddle/base/error.h"
#include "heddle/base/files/files.h"
#include "heddle/base/utf8.h"
#include "heddle/text/pipeline/special_tokens.h"
#include "heddle/text/sentencepiece/sentencepiece_tokenizer.h"
#include "heddle/text/tokenizer_folder.h"
#include "heddle/text/tokenizer_impl.h"

namespace heddle {

namespace {

Encoding fill_in(const std::vector<Template::Item>& items, std::span<const int32_t> first,
                 std::span<const int32_t> second) {
  Encoding result;
  for (const Template::Item& item : items) {
    const std::span<const int32_t> ids = item.text < 0    ? std::span<const int32_t>(item.ids)
                                         : item.text == 0 ? first
                                                          : second;
    result.ids.insert(result.ids.end(), ids.begin(), ids.end());
    result.types.insert(result.types.end(), ids.size(), item.type);
  }
  return result;
}

void check_id(int32_t id, int64_t size) {
  check(id >= 0 && id < size, ErrorKind::data,
        "tokenizer: id {} is not in the vocabulary, whose ids are 0 to {}", id, size - 1);
}

}  // namespace

Tokenizer Tokenizer::load(const std::string& path) {
  if (is_directory(path)) return load_tokenizer_folder(path);
  const bool is_hub_file =
      path.ends_with(".json") || path.ends_with(".txt") || path.ends_with(".bpe");
  return is_hub_file ? load_tokenizer_file(path) : load_sentencepiece(path);
}

Tokenizer Tokenizer::from_bytes(std::string bytes, const std::string& name) {
  return sentencepiece_tokenizer(std::move(bytes), name);
}

std::vector<int32_t> Tokenizer::encode(std::string_view text) const {
  // ICU, SentencePiece and byte pair encoding count in 32 bits.
  check(text.size() < size_t{1} << 31, ErrorKind::data,
        "tokenizer: a text of {} bytes is too long; cut it into parts of less than 2 GiB",
        text.size());
  check_utf8(text, "tokenizer: the text");
  return impl_->encode(text);
}

Encoding Tokenizer::with_special(std::span<const int32_t> ids, int32_t language) const {
  if (language < 0) return fill_in(impl_->around.single, ids, {});
  std::vector<Template::Item> items = impl_->around.single;
  for (Template::Item& item : items) {
    for (int32_t& id : item.ids) id = language_of(token(id)).empty() ? id : language;
  }
  return fill_in(items, ids, {});
}

std::vector<std::pair<std::string, int32_t>> Tokenizer::languages() const {
  std::vector<std::pair<std::string, int32_t>> found;
  for (int32_t id = 0; id < vocab_size(); ++id) {
    if (!is_special(id)) continue;
    std::string name = language_of(token(id));
    if (!name.empty()) found.emplace_back(std::move(name), id);
  }
  return found;
}

Encoding Tokenizer::with_special(std::span<const int32_t> first,
                                 std::span<const int32_t> second) const {
  return fill_in(impl_->around.pair, first, second);
}

int64_t Tokenizer::special_count(bool is_pair) const {
  int64_t count = 0;
  for (const auto& item : is_pair ? impl_->around.pair : impl_->around.single) {
    count += static_cast<int64_t>(item.ids.size());
  }
  return count;
}

std::string Tokenizer::decode(std::span<const int32_t> ids, const DecodeOptions& options) const {
  for (const int32_t id : ids) check_id(id, vocab_size());
  return impl_->decode(ids, options);
}

int64_t Tokenizer::vocab_size() const { return impl_->vocab_size(); }
int32_t Tokenizer::pad_id() const { return impl_->special.pad; }
int32_t Tokenizer::unk_id() const { return impl_->special.unk; }
int32_t Tokenizer::bos_id() const { return impl_->special.bos; }
int32_t Tokenizer::eos_id() const { return impl_->special.eos; }
int32_t Tokenizer::cls_id() const { return impl_->special.cls; }
int32_t Tokenizer::sep_id() const { return impl_->special.sep; }
int32_t Tokenizer::mask_id() const { return impl_->special.mask; }
bool Tokenizer::is_special(int32_t id) const { return impl_->is_special(id); }

std::string Tokenizer::token(int32_t id) const {
  check_id(id, vocab_size());
  return impl_->token(id);
}

int32_t Tokenizer::token_id(std::string_view token) const {
  return token.empty() ? unk_id() : impl_->token_id(token);
}

const std::string& Tokenizer::kind() const { return impl_->kind; }
const std::string& Tokenizer::fingerprint() const { return impl_->fingerprint; }
const std::vector<TokenizerFile>& Tokenizer::files() const { return impl_->files; }

const std::string& Tokenizer::model_bytes() const {
  check(impl_->files.size() == 1, ErrorKind::usage,
        "tokenizer: it has {} files ({} first); keep them in a folder", impl_->files.size(),
        impl_->files.empty() ? "" : impl_->files[0].name);
  return impl_->files[0].bytes;
}

void Tokenizer::save(const std::string& path) const { write_file_atomic(path, model_bytes()); }

void Tokenizer::save_folder(const std::string& folder) const {
  for (const auto& files : {impl_->files, impl_->beside()}) {
    for (const TokenizerFile& file : files) {
      write_file_atomic(join_path(folder, file.name), file.bytes);
    }
  }
}

}  // namespace heddle
