// The way of a text through a tokenizer: the added tokens in it are found; what is between them is
// normalized and split into words, whose ids the subword model gives; and from ids back to text.
#include "heddle/text/tokenizer.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <mutex>

#include "heddle/base/error.h"
#include "heddle/base/files/files.h"
#include "heddle/base/utf8.h"
#include "heddle/text/pipeline/pipeline.h"
#include "heddle/text/pipeline/special_tokens.h"
#include "heddle/text/strings/strings.h"

namespace heddle {
namespace {

constexpr size_t kLongestCachedWord = 64;                 // bytes
constexpr std::string_view kHiddenMark = "\xEF\xB7\x90";  // U+FDD0

/// Remembers the ids of words that were encoded before. May be used from several threads. Keeps at
/// most some ten thousand words, the first that came.
class WordCache {
 public:
  /// Appends the ids of a word if it is there.
  bool find(std::string_view word, std::vector<int32_t>& ids) const {
    const Shard& shard = shard_of(word);
    const std::lock_guard lock(shard.mutex);
    const auto at = shard.words.find(word);
    if (at == shard.words.end()) return false;
    ids.insert(ids.end(), at->second.begin(), at->second.end());
    return true;
  }

  void add(std::string_view word, std::vector<int32_t> word_ids) const {
    Shard& shard = shard_of(word);
    const std::lock_guard lock(shard.mutex);
    if (shard.words.size() < kMostWords) shard.words.emplace(word, std::move(word_ids));
  }

 private:
  static constexpr size_t kShards = 16, kMostWords = 4096;
  struct Shard {
    mutable std::mutex mutex;
    StringMap<std::vector<int32_t>> words;
  };
  Shard& shard_of(std::string_view word) const { return shards_[StringHash()(word) % kShards]; }

  mutable std::array<Shard, kShards> shards_;
};

// Without what a run that was told languages keeps there, which changes no id of a text.
std::string without_languages(const TokenizerFile& file) {
  Json json = Json::parse(file.bytes, file.name);
  json.erase("src_lang");
  json.erase("tgt_lang");
  return json.as_object().empty() ? "" : json.dump(2) + "\n";
}

/// What a tokenizer's files are known by: of one file its checksum, else one over all.
std::string fingerprint_of(const std::vector<TokenizerFile>& files) {
  if (files.size() == 1) return checksum(files[0].bytes);
  std::string all;
  for (const TokenizerFile& file : files) {
    const bool names_languages = file.name == "tokenizer_config.json" &&
                                 file.bytes.find("\"src_lang\"") != std::string::npos;
    const std::string rest = names_languages ? without_languages(file) : "";
    if (names_languages && rest.empty()) continue;
    all += file.name + ' ' + checksum(names_languages ? rest : file.bytes) + '\n';
  }
  return checksum(all);
}

Encoding fill_in(const std::vector<Template::Item>& items, std::span<const int32_t> first,
                 std::span<const int32_t> second) {
  Encoding result;
  for (const Template::Item& item : items) {
    const auto ids = item.text < 0 ? std::span(item.ids) : item.text == 0 ? first : second;
    result.ids.insert(result.ids.end(), ids.begin(), ids.end());
    result.types.insert(result.types.end(), ids.size(), item.type);
  }
  return result;
}

void check_id(int32_t id) {
  check(id >= 0, ErrorKind::data, "tokenizer: {} is no token id: ids are not negative", id);
}

}  // namespace

/// A description that is complete, its files, and the words that came before.
class Tokenizer::Impl final : public PipelineDescription {
 public:
  Impl(PipelineDescription description, std::vector<TokenizerFile> own)
      : PipelineDescription(std::move(description)),
        files(std::move(own)),
        fingerprint(fingerprint_of(files)) {
    added.prepare(normalizer.get());
  }

  // has_marks: kHiddenMark is nothing but a border that no added token crosses; where there are
  // some, names that only normalizing makes are no special tokens
  void encode(std::string_view text, bool has_marks, std::vector<int32_t>& ids) const {
    has_marks = has_marks && text.find(kHiddenMark) != text.npos;
    split(text, false, has_marks, [&](std::string_view part, int32_t id) {
      if (id >= 0) return ids.push_back(id);
      encode_between(part, part.data() == text.data(), has_marks, ids);
    });
  }

  void encode_rendered(std::string_view text, std::vector<int32_t>& ids) const {
    added.split_hidden(text, [&](std::string_view part, int32_t id) {
      if (id >= 0) return ids.push_back(id);
      encode(part, true, ids);
    });
  }

  /// Empty for an id that is in a gap of the vocabulary, or behind it.
  std::string token(int32_t id) const {
    if (const AddedToken* token = added.find(id)) return token->content;
    const std::string* token = model->vocabulary().token(id);
    return token == nullptr ? "" : *token;
  }

  const std::vector<TokenizerFile> files;
  const std::string fingerprint;

 private:
  void split(std::string_view text, bool is_normalized, bool has_marks,
             const std::function<void(std::string_view, int32_t)>& f) const {
    if (has_marks && added.has_normalized_special())
      return added.split_given(text, is_normalized, f);
    added.split(text, is_normalized, f);
  }

  void encode_between(std::string_view text, bool is_first, bool has_marks,
                      std::vector<int32_t>& ids) const {
    std::string normalized;
    if (normalizer) {
      if (is_first && pre_tokenizer.asks_for_first) is_first = normalizer->keeps_start(text);
      text = normalized = (*normalizer)(text);
    }
    split(text, true, has_marks, [&](std::string_view part, int32_t id) {
      if (id >= 0) return ids.push_back(id);
      const bool begins = is_first && part.data() == text.data();
      if (!has_marks || part.find(kHiddenMark) == part.npos) {
        return encode_normalized(part, begins, ids);
      }
      const std::string plain = replace_all(part, kHiddenMark, "");
      if (!plain.empty()) encode_normalized(plain, begins, ids);
    });
  }

  void encode_normalized(std::string_view text, bool is_first, std::vector<int32_t>& ids) const {
    if (!pre_tokenizer.split) return model->encode(text, ids);  // no word: few texts come again
    PreTokens pre_tokens{std::string(text), {{0, text.size(), is_first}}};
    pre_tokenizer.split(pre_tokens);
    for (size_t i = 0; i < pre_tokens.ranges.size(); ++i) encode_word(pre_tokens[i], ids);
  }

  void encode_word(std::string_view word, std::vector<int32_t>& ids) const {
    if (word.size() > kLongestCachedWord) return model->encode(word, ids);
    if (cache_.find(word, ids)) return;
    std::vector<int32_t> own;
    model->encode(word, own);
    ids.insert(ids.end(), own.begin(), own.end());
    cache_.add(word, std::move(own));
  }

  WordCache cache_;
};

Tokenizer make_tokenizer(PipelineDescription description, std::vector<TokenizerFile> files) {
  return Tokenizer(
      std::make_shared<const Tokenizer::Impl>(std::move(description), std::move(files)));
}

namespace {

void check_encodable(std::string_view text) {
  // ICU, SentencePiece and byte pair encoding count in 32 bits.
  check(text.size() < size_t{1} << 31, ErrorKind::data,
        "tokenizer: a text of {} bytes is too long; cut it into parts of less than 2 GiB",
        text.size());
  check_utf8(text, "tokenizer: the text");
}

}  // namespace

std::vector<int32_t> Tokenizer::encode(std::string_view text) const {
  check_encodable(text);
  std::vector<int32_t> ids;
  impl_->encode(text, false, ids);
  return ids;
}

std::vector<int32_t> Tokenizer::encode_rendered(std::string_view text) const {
  check_encodable(text);
  std::vector<int32_t> ids;
  impl_->encode_rendered(text, ids);
  return ids;
}

std::string Tokenizer::hide_special(std::string_view text) const {
  return impl_->added.broken(text, kHiddenMark, impl_->normalizer.get());
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
  const Impl& own = *impl_;
  if (own.decode_ids) {
    std::vector<int32_t> known(ids.begin(), ids.end());
    std::erase_if(known, [size = vocab_size()](int32_t id) {
      check_id(id);
      return id >= size;
    });
    return own.decode_ids(known, options.skip_special);
  }
  std::vector<std::string> tokens;
  tokens.reserve(ids.size());
  for (const int32_t id : ids) {
    check_id(id);
    if (options.skip_special && is_special(id)) continue;
    if (std::string p = own.token(id); !p.empty()) tokens.push_back(std::move(p));
  }
  if (own.decoder && !tokens.empty()) own.decoder(tokens);
  std::string text = fmt::format("{}", fmt::join(tokens, own.decoder ? "" : " "));
  return options.clean_up.value_or(own.clean_up) ? clean_up_spaces(std::move(text)) : text;
}

int64_t Tokenizer::vocab_size() const {
  return std::max<int64_t>(impl_->model->vocabulary().size(), impl_->added.largest_id() + 1);
}

int32_t Tokenizer::pad_id() const { return impl_->special.pad; }
int32_t Tokenizer::unk_id() const { return impl_->special.unk; }
int32_t Tokenizer::bos_id() const { return impl_->special.bos; }
int32_t Tokenizer::eos_id() const { return impl_->special.eos; }
int32_t Tokenizer::cls_id() const { return impl_->special.cls; }
int32_t Tokenizer::sep_id() const { return impl_->special.sep; }
int32_t Tokenizer::mask_id() const { return impl_->special.mask; }
bool Tokenizer::is_special(int32_t id) const { return impl_->added.is_special(id); }

std::string Tokenizer::token(int32_t id) const {
  check_id(id);
  return impl_->token(id);
}

int32_t Tokenizer::token_id(std::string_view token) const {
  if (token.empty()) return unk_id();
  if (const auto id = impl_->added.find(token)) return *id;
  return impl_->model->vocabulary().find(token).value_or(unk_id());
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
  std::vector<TokenizerFile> files = impl_->files;
  if (impl_->beside) std::ranges::move(impl_->beside(), std::back_inserter(files));
  for (const TokenizerFile& file : files) {
    write_file_atomic(join_path(folder, file.name), file.bytes);
  }
}

}  // namespace heddle
