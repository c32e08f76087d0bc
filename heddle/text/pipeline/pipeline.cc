// A tokenizer made of parts, as Hugging Face's tokenizer.json describes it: the tokens that are
// found before anything else is done with a text, and what is done with the rest.
#include "heddle/text/pipeline/pipeline.h"

#include <algorithm>
#include <array>
#include <mutex>

#include "heddle/base/error.h"
#include "heddle/base/files/files.h"
#include "heddle/base/utf8.h"
#include "heddle/text/strings/pattern.h"
#include "heddle/text/strings/strings.h"

namespace heddle {
namespace {

bool ends_with_word(std::string_view text) {
  if (text.empty()) return false;
  size_t at = last_character(text);
  return is_word_character(next_code_point(text, at));
}

bool starts_with_word(std::string_view text) {
  size_t at = 0;
  return !text.empty() && is_word_character(next_code_point(text, at));
}

constexpr size_t kLongestCachedWord = 64;  // bytes

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

class Pipeline final : public Tokenizer::Impl {
 public:
  explicit Pipeline(PipelineParts parts) : parts_(std::move(parts)) {
    parts_.added.prepare(parts_.normalizer.get());
  }

  std::vector<int32_t> encode(std::string_view text) const override {
    std::vector<int32_t> ids;
    parts_.added.split(text, false, [&](std::string_view part, int32_t id) {
      if (id >= 0) return ids.push_back(id);
      encode_between(part, part.data() == text.data(), ids);
    });
    return ids;
  }

  std::string decode(std::span<const int32_t> ids, const DecodeOptions& options) const override {
    std::vector<std::string> tokens;
    tokens.reserve(ids.size());
    for (const int32_t id : ids) {
      if (options.skip_special && is_special(id)) continue;
      if (std::string p = token(id); !p.empty()) tokens.push_back(std::move(p));
    }
    if (parts_.decoder && !tokens.empty()) parts_.decoder(tokens);
    std::string text = fmt::format("{}", fmt::join(tokens, parts_.decoder ? "" : " "));
    return options.clean_up.value_or(parts_.clean_up) ? clean_up_spaces(std::move(text)) : text;
  }

  int64_t vocab_size() const override {
    return std::max<int64_t>(parts_.model->vocabulary().size(), parts_.added.largest_id() + 1);
  }

  std::string token(int32_t id) const override {
    if (const AddedToken* token = parts_.added.find(id)) return token->content;
    const std::string* token = parts_.model->vocabulary().token(id);
    return token == nullptr ? "" : *token;
  }

  int32_t token_id(std::string_view token) const override {
    if (const auto id = parts_.added.find(token)) return *id;
    return parts_.model->vocabulary().find(token).value_or(special.unk);
  }

  bool is_special(int32_t id) const override { return parts_.added.is_special(id); }
  std::vector<TokenizerFile> beside() const override { return parts_.beside; }

 private:
  void encode_between(std::string_view text, bool is_first, std::vector<int32_t>& ids) const {
    std::string normalized;
    if (parts_.normalizer) {
      if (is_first && parts_.pre_tokenizer.asks_for_first) {
        is_first = parts_.normalizer->keeps_start(text);
      }
      text = normalized = (*parts_.normalizer)(text);
    }
    parts_.added.split(text, true, [&](std::string_view part, int32_t id) {
      if (id >= 0) return ids.push_back(id);
      encode_normalized(part, is_first && part.data() == text.data(), ids);
    });
  }

  void encode_normalized(std::string_view text, bool is_first, std::vector<int32_t>& ids) const {
    if (!parts_.pre_tokenizer.split) return encode_word(text, ids);
    PreTokens pre_tokens{std::string(text), {{0, text.size(), is_first}}};
    parts_.pre_tokenizer.split(pre_tokens);
    for (size_t i = 0; i < pre_tokens.ranges.size(); ++i) encode_word(pre_tokens[i], ids);
  }

  void encode_word(std::string_view word, std::vector<int32_t>& ids) const {
    if (word.size() > kLongestCachedWord) return parts_.model->encode(word, ids);
    if (cache_.find(word, ids)) return;
    std::vector<int32_t> own;
    parts_.model->encode(word, own);
    ids.insert(ids.end(), own.begin(), own.end());
    cache_.add(word, std::move(own));
  }

  PipelineParts parts_;
  WordCache cache_;
};

/// What a tokenizer's files are known by: of one file its checksum, else one over all.
std::string fingerprint_of(const std::vector<TokenizerFile>& files) {
  if (files.size() == 1) return checksum(files[0].bytes);
  std::string all;
  for (const TokenizerFile& file : files) all += file.name + ' ' + checksum(file.bytes) + '\n';
  return checksum(all);
}

}  // namespace

AddedToken read_added_token(const Json& json, const std::string& source) {
  AddedToken token;
  if (json.is_string()) {
    token.content = json.as_string();
    token.special = true;
    token.normalized = false;
  } else {
    token.content = json.get_string("content", source);
    token.single_word = bool_or(json, "single_word", false, source);
    token.lstrip = bool_or(json, "lstrip", false, source);
    token.rstrip = bool_or(json, "rstrip", false, source);
    token.special = bool_or(json, "special", false, source);
    token.normalized = bool_or(json, "normalized", !token.special, source);
  }
  check(!token.content.empty(), ErrorKind::data, "{}: an added token is empty", source);
  return token;
}

void AddedTokens::add(int32_t id, AddedToken token, const std::string& source) {
  check(token.content.size() <= kMaxTokenBytes, ErrorKind::data,
        "{}: the added token with the id {} has {} bytes; at most {} are taken", source, id,
        token.content.size(), kMaxTokenBytes);
  const auto [at, is_new] = ids_.emplace(token.content, id);
  check(is_new || at->second == id, ErrorKind::data,
        "{}: added token '{}' comes twice, with the ids {} and {}", source, token.content,
        at->second, id);
  const auto known = tokens_.find(id);
  check(known == tokens_.end() || known->second.content == token.content, ErrorKind::data,
        "{}: added tokens '{}' and '{}' both have the id {}", source,
        known == tokens_.end() ? "" : known->second.content, token.content, id);
  tokens_[id] = std::move(token);
  largest_ = std::max(largest_, id);
}

void AddedTokens::prepare(const Normalizer* normalizer) {
  for (auto& [id, token] : tokens_) {
    if (token.special && hides_special_) continue;
    if (!token.normalized) {
      plain_.add(token.content, id);
      continue;
    }
    if (normalizer != nullptr) token.content = (*normalizer)(token.content);
    check(token.content.size() <= kMaxTokenBytes, ErrorKind::data,
          "tokenizer: the added token with the id {} has {} bytes once it is normalized; at most "
          "{} are taken",
          id, token.content.size(), kMaxTokenBytes);
    if (!token.content.empty()) normalized_.add(token.content, id);
  }
}

void AddedTokens::split(std::string_view text, bool is_normalized,
                        const std::function<void(std::string_view, int32_t)>& f) const {
  const TokenTrie& trie = is_normalized ? normalized_ : plain_;
  size_t done = 0;       // up to there f() was called
  size_t space_end = 0;  // of the white space last looked at
  for (size_t at = 0; !trie.is_empty() && at < text.size();) {
    size_t length = 0;
    int32_t id = -1;
    trie.each_prefix(text.substr(at), [&](size_t l, int32_t v) { length = l, id = v; });
    if (id < 0) {
      ++at;
      continue;
    }
    size_t begin = at, end = at + length;
    at = end;
    const AddedToken& token = tokens_.at(id);
    if (token.single_word &&
        (ends_with_word(text.substr(0, begin)) || starts_with_word(text.substr(end)))) {
      continue;
    }
    if (token.lstrip && begin > done) begin -= trailing_space(text.substr(done, begin - done));
    if (token.lstrip) begin = std::max(begin, done);
    if (token.rstrip && end >= space_end) space_end = end + leading_space(text.substr(end));
    if (token.rstrip) end = space_end;
    if (begin >= end) continue;  // the token before it took all of it; `tokenizers` panics
    if (done < begin) f(text.substr(done, begin - done), -1);
    f(text.substr(begin, end - begin), id);
    done = end;  // which may lie before where the token before it ended: so in `tokenizers`
  }
  if (done < text.size()) f(text.substr(done), -1);
}

const AddedToken* AddedTokens::find(int32_t id) const {
  const auto at = tokens_.find(id);
  return at == tokens_.end() ? nullptr : &at->second;
}

std::optional<int32_t> AddedTokens::find(std::string_view content) const {
  const auto at = ids_.find(content);
  return at == ids_.end() ? std::nullopt : std::optional<int32_t>(at->second);
}

bool AddedTokens::is_special(int32_t id) const {
  const AddedToken* token = find(id);
  return token != nullptr && token->special;
}

Tokenizer make_tokenizer(PipelineDescription description, std::vector<TokenizerFile> files) {
  auto pipeline = std::make_shared<Pipeline>(std::move(description.parts));
  pipeline->kind = description.kind;
  pipeline->special = description.special;
  pipeline->around = std::move(description.around);
  pipeline->fingerprint = fingerprint_of(files);
  pipeline->files = std::move(files);
  return Tokenizer(std::move(pipeline));
}

}  // namespace heddle
