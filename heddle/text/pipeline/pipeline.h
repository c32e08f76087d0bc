// A tokenizer made of parts, as Hugging Face's tokenizer.json describes it.
#pragma once

#include <array>
#include <memory>
#include <mutex>

#include "heddle/text/pipeline/added_tokens.h"
#include "heddle/text/pipeline/normalizer.h"
#include "heddle/text/pipeline/pre_tokenizer.h"
#include "heddle/text/pipeline/token_decoder.h"
#include "heddle/text/subwords/subword_model.h"
#include "heddle/text/tokenizer_impl.h"

namespace heddle {

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

/// What a text goes through, from above; absent parts do nothing.
struct PipelineParts {
  AddedTokens added;
  std::unique_ptr<Normalizer> normalizer;
  PreTokenizer pre_tokenizer;
  std::unique_ptr<SubwordModel> model;
  TokenDecoder decoder;               ///< absent: tokens are joined with spaces
  bool clean_up = false;              ///< whether decode() cleans up unless told
  std::vector<TokenizerFile> beside;  ///< see Tokenizer::Impl::beside()
};

class Pipeline final : public Tokenizer::Impl {
 public:
  /// The parts are complete, `added.prepare()` aside.
  explicit Pipeline(PipelineParts parts);

  std::vector<int32_t> encode(std::string_view text) const override;
  std::string decode(std::span<const int32_t> ids, const DecodeOptions& options) const override;
  int64_t vocab_size() const override;
  std::string token(int32_t id) const override;
  int32_t token_id(std::string_view token) const override;
  bool is_special(int32_t id) const override { return parts_.added.is_special(id); }
  std::vector<TokenizerFile> beside() const override { return parts_.beside; }

 private:
  void encode_between(std::string_view text, bool is_first, std::vector<int32_t>& ids) const;
  void encode_normalized(std::string_view text, bool is_first, std::vector<int32_t>& ids) const;
  void encode_word(std::string_view word, std::vector<int32_t>& ids) const;

  PipelineParts parts_;
  WordCache cache_;
};

}  // namespace heddle
