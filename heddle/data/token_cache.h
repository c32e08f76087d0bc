// Tokenised parallel text in a memory-mapped cache file: made once, then a corpus larger than
// memory can be trained on.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "heddle/data/cache_file.h"
#include "heddle/data/parallel_text.h"
#include "heddle/text/tokenizer.h"

namespace heddle {

/// How a line becomes ids.
struct TextEncoder {
  /// Ids of a line, without special ids; called from several threads at once.
  std::function<std::vector<int32_t>(std::string_view)> encode;
  /// Differs whenever encode() may give other ids: part of the cache's key. Somebody who adds a
  /// step before the tokenizer (lower-casing) adds its name here.
  std::string fingerprint;
  int64_t vocab_size = 0;  ///< ids are in [0, vocab_size)
  int32_t unk_id = 1;
};

/// The encoder of a tokenizer alone.
TextEncoder text_encoder(const Tokenizer& tokenizer);

struct CorpusOptions {
  ParallelFiles files;
  std::string cache_dir;  ///< made if it is missing; RUN/cache by custom
  std::string name;       ///< begins the cache file's name, e.g. "train.en-de"
  /// Longest source and target that are used, in tokens with the end token: longer pairs are left
  /// out and counted.
  int64_t max_source_tokens = 1024;
  int64_t max_target_tokens = 1024;
  std::optional<TextEncoder> target_encoder = {};  ///< of the target; absent: that of the source
};

/// Ids of one sentence, in the cache file (16 or 32 bits wide).
class TokenView {
 public:
  TokenView(const std::byte* data, int64_t size, int width)
      : data_(data), size_(size), width_(width) {}
  int64_t size() const { return size_; }
  int32_t operator[](int64_t i) const {
    return width_ == 2 ? static_cast<int32_t>(reinterpret_cast<const uint16_t*>(data_)[i])
                       : static_cast<int32_t>(reinterpret_cast<const uint32_t*>(data_)[i]);
  }
  void append_to(std::vector<int32_t>& out) const {
    for (int64_t i = 0; i < size_; ++i) out.push_back((*this)[i]);
  }
  std::vector<int32_t> ids() const {
    std::vector<int32_t> out;
    append_to(out);
    return out;
  }

 private:
  const std::byte* data_;
  int64_t size_;
  int width_;  // bytes an id
};

/// The pairs of a corpus as ids, in the order of the files, without blank and over-long pairs.
/// Copies share the mapped file.
class TokenizedCorpus {
 public:
  using Log = CacheLog;

  /// Opens the cache of these files, this encoder and these limits, or makes it: the texts are
  /// tokenised on all threads, block by block, and the same bytes come out for any number of
  /// threads. The file is CACHE_DIR/NAME-KEY.tokens, where KEY is a checksum of the contents of
  /// both files, the encoder's fingerprint and the limits: a change of any gives another file. It
  /// is written atomically; a cache that was cut short or altered is made anew. `log` hears of each
  /// of these, and the report.
  /// Errors: data for all that ParallelReader refuses, or if no pair is left; usage for a limit
  /// below 2; system if the cache cannot be written.
  static TokenizedCorpus open_or_build(const CorpusOptions& options, const TextEncoder& encoder,
                                       const Log& log = nullptr);

  int64_t size() const;  ///< pairs
  /// Ids of a pair, 0 <= i < size().
  TokenView source(int64_t i) const;
  TokenView target(int64_t i) const;
  /// Numbers of ids, without special ids: int32[size()].
  std::span<const int32_t> source_lengths() const;
  std::span<const int32_t> target_lengths() const;

  const CorpusReport& report() const;
  /// The key (16 hex digits): equal for equal contents, encoder and limits.
  const std::string& key() const;
  /// The cache file.
  const std::string& path() const;

 private:
  struct Impl;
  // So many ids of a pair, behind the first `skipped`.
  TokenView ids(int64_t i, uint64_t skipped, int32_t count) const;
  explicit TokenizedCorpus(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<const Impl> impl_;
};

}  // namespace heddle
