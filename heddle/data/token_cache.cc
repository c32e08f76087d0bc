// Building and opening the cache of a tokenised corpus.
#include "heddle/data/token_cache.h"

#include <fmt/format.h>

#include <chrono>
#include <filesystem>
#include <limits>
#include <optional>
#include <system_error>
#include <utility>

#include "heddle/base/error.h"
#include "heddle/base/files/files.h"
#include "heddle/base/parallel.h"
#include "heddle/base/profile.h"
#include "heddle/data/cache_file.h"
#include "heddle/text/strings/strings.h"

namespace heddle {

struct TokenizedCorpus::Impl {
  CacheView view;
  std::string key;
};

namespace {

// What is in memory at once while a cache is made: at most this many pairs, or bytes and one pair.
constexpr size_t kBlockPairs = 16384;
constexpr size_t kBlockBytes = size_t{32} << 20;
// Pairs that one thread takes at a time.
constexpr int64_t kThreadPairs = 64;

struct CachedPair {
  std::string source_text, target_text;
  std::vector<int32_t> source, target;
  bool is_empty = false, is_too_long = false;
};

struct Limits {
  int64_t source, target;
};

uint64_t cache_key(const CorpusOptions& options, const TextEncoder& encoder) {
  std::string text = fmt::format(
      "heddle tokens 1\nsource {} {}\ntarget {} {}\nencoder {} {} {}\nlimits {} {}\n",
      file_size(options.files.source), checksum_file(options.files.source),
      file_size(options.files.target), checksum_file(options.files.target), encoder.vocab_size,
      encoder.unk_id, encoder.fingerprint, options.max_source_tokens, options.max_target_tokens);
  if (options.target_encoder) {
    const TextEncoder& target = *options.target_encoder;
    text += fmt::format("target encoder {} {} {}\n", target.vocab_size, target.unk_id,
                        target.fingerprint);
  }
  return xxh64(std::as_bytes(std::span(text)));
}

std::vector<int32_t> encode_checked(const TextEncoder& encoder, std::string_view text) {
  std::vector<int32_t> ids = encoder.encode(text);
  for (const int32_t id : ids) {
    check(id >= 0 && id < encoder.vocab_size, ErrorKind::internal,
          "token cache: the tokenizer gave id {} but its vocabulary has {}", id,
          encoder.vocab_size);
  }
  return ids;
}

void encode_pair(CachedPair& pair, const TextEncoder& encoder, const TextEncoder& target_encoder,
                 const Limits& limits) {
  pair.is_empty = is_blank(pair.source_text) || is_blank(pair.target_text);
  if (pair.is_empty) return;
  pair.is_too_long =
      pair.source_text.size() > kLongestText || pair.target_text.size() > kLongestText;
  if (pair.is_too_long) return;
  pair.source = encode_checked(encoder, pair.source_text);
  pair.target = encode_checked(target_encoder, pair.target_text);
  pair.is_empty = pair.source.empty() || pair.target.empty();
  pair.is_too_long = std::ssize(pair.source) + 1 > limits.source ||  // + 1: the end token
                     std::ssize(pair.target) + 1 > limits.target;
}

/// Reads up to a block of pairs into `block`, reusing its memory; the number read.
size_t read_block(ParallelReader& reader, std::vector<CachedPair>& block) {
  size_t count = 0;
  for (size_t bytes = 0; count < kBlockPairs && bytes < kBlockBytes; ++count) {
    if (count == block.size()) block.emplace_back();
    CachedPair& pair = block[count];
    if (!reader.next(pair.source_text, pair.target_text)) break;
    bytes += pair.source_text.size() + pair.target_text.size();
  }
  return count;
}

void count_pair(CorpusReport& report, const CachedPair& pair, int32_t source_unk,
                int32_t target_unk) {
  ++report.lines;
  if (pair.is_empty) {
    if (report.empty++ == 0) report.first_empty = report.lines;
  } else if (pair.is_too_long) {
    if (report.too_long++ == 0) report.first_too_long = report.lines;
  } else {
    ++report.pairs;
    report.source_tokens += std::ssize(pair.source);
    report.target_tokens += std::ssize(pair.target);
    for (const int32_t id : pair.source) report.unknown_source += id == source_unk;
    for (const int32_t id : pair.target) report.unknown_target += id == target_unk;
  }
}

void build(const CorpusOptions& options, const TextEncoder& encoder, uint64_t key,
           const std::string& path) {
  const Limits limits{options.max_source_tokens, options.max_target_tokens};
  const TextEncoder& target = options.target_encoder ? *options.target_encoder : encoder;
  write_file_atomic(path, [&](const ByteSink& sink) {
    CacheWriter writer(sink, std::max(encoder.vocab_size, target.vocab_size) <= 65536 ? 2 : 4);
    ParallelReader reader(options.files);
    CorpusReport report;
    std::vector<CachedPair> block;
    while (const size_t count = read_block(reader, block)) {
      parallel_blocks(static_cast<int64_t>(count), kThreadPairs, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          encode_pair(block[static_cast<size_t>(i)], encoder, target, limits);
        }
      });
      for (size_t i = 0; i < count; ++i) {
        const CachedPair& pair = block[i];
        count_pair(report, pair, encoder.unk_id, target.unk_id);
        if (!pair.is_empty && !pair.is_too_long) writer.add_pair(pair.source, pair.target);
      }
    }
    check(report.pairs > 0, ErrorKind::data,
          "{} and {}: no pair is left to use: {}; at most {} source and {} target tokens are "
          "allowed, the end token included",
          options.files.source, options.files.target, report.str(), limits.source, limits.target);
    writer.finish(key, report);
  });
}

void check_options(const CorpusOptions& options) {
  for (const int64_t limit : {options.max_source_tokens, options.max_target_tokens}) {
    check(limit >= 2 && limit <= std::numeric_limits<int32_t>::max(), ErrorKind::usage,
          "token cache: a limit of {} tokens; 2 (a token and the end token) to 2147483647 are "
          "possible",
          limit);
  }
}

/// Removes what a killed build of this cache left; another process that builds it now would have
/// its file taken away and fail, so only files untouched for long go.
void remove_leftovers(const std::string& dir, const std::string& name) {
  for (const std::string& entry : list_directory(dir)) {
    if (!entry.starts_with(name) || !is_temporary_name(entry)) continue;
    const std::string path = join_path(dir, entry);
    std::error_code error;
    const auto changed = std::filesystem::last_write_time(path, error);
    const auto now = std::filesystem::file_time_type::clock::now();
    if (!error && now - changed > std::chrono::minutes(10)) remove_path(path);
  }
}

}  // namespace

TextEncoder text_encoder(const Tokenizer& tokenizer) {
  return {.encode = [tokenizer](std::string_view text) { return tokenizer.encode(text); },
          .fingerprint = tokenizer.fingerprint(),
          .vocab_size = tokenizer.vocab_size(),
          .unk_id = tokenizer.unk_id()};
}

TokenizedCorpus TokenizedCorpus::open_or_build(const CorpusOptions& options,
                                               const TextEncoder& encoder, const Log& log) {
  const ProfilePhase phase("tokenise");
  check_options(options);
  const auto say = [&](const std::string& text) {
    if (log) log(text);
  };
  const uint64_t key = cache_key(options, encoder);
  const std::string key_text = fmt::format("{:016x}", key);
  const std::string path =
      join_path(options.cache_dir, fmt::format("{}-{}.tokens", options.name, key_text));
  make_directories(options.cache_dir);
  remove_leftovers(options.cache_dir, options.name + "-");
  std::string fault;
  std::optional<CacheView> view;
  if (path_exists(path)) {
    view = open_cache_file(path, key, fault);
    if (!view) say(fmt::format("{}: not usable ({}); making it anew", path, fault));
  }
  if (!view) {
    const auto start = std::chrono::steady_clock::now();
    build(options, encoder, key, path);
    view = open_cache_file(path, key, fault);
    check(view.has_value(), ErrorKind::system,
          "{}: reads back otherwise than it was written ({}); is the disk failing?", path, fault);
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    say(fmt::format("{}: tokenised in {:.1f} s", options.name, seconds.count()));
  }
  say(fmt::format("{}: {}", options.name, view->footer.report.str()));
  return TokenizedCorpus(std::make_shared<const Impl>(Impl{std::move(*view), key_text}));
}

int64_t TokenizedCorpus::size() const { return report().pairs; }

TokenView TokenizedCorpus::ids(int64_t i, uint64_t skipped, int32_t count) const {
  const CacheView& view = impl_->view;
  const auto width = static_cast<uint64_t>(view.footer.id_bytes);
  const uint64_t begin = view.offsets[static_cast<size_t>(i)] + skipped;
  return {view.ids + begin * width, count, static_cast<int>(width)};
}

TokenView TokenizedCorpus::source(int64_t i) const { return ids(i, 0, source_lengths()[i]); }
TokenView TokenizedCorpus::target(int64_t i) const {
  return ids(i, static_cast<uint64_t>(source_lengths()[i]), target_lengths()[i]);
}

std::span<const int32_t> TokenizedCorpus::source_lengths() const {
  return impl_->view.source_lengths;
}
std::span<const int32_t> TokenizedCorpus::target_lengths() const {
  return impl_->view.target_lengths;
}
const CorpusReport& TokenizedCorpus::report() const { return impl_->view.footer.report; }
const std::string& TokenizedCorpus::key() const { return impl_->key; }
const std::string& TokenizedCorpus::path() const { return impl_->view.file.path(); }

}  // namespace heddle
