// Remembers the ids of words that were encoded before.
#pragma once

#include <array>
#include <cstdint>
#include <mutex>
#include <string_view>
#include <vector>

#include "heddle/text/subwords/vocabulary.h"

namespace heddle {

/// May be used from several threads. Keeps at most some ten thousand words, the first that came.
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

}  // namespace heddle
