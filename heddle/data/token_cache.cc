// Building and opening the cache of a tokenised corpus, and the format of its file.
#include "heddle/data/token_cache.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include "heddle/base/error.h"
#include "heddle/base/files/files.h"
#include "heddle/base/files/mmap.h"
#include "heddle/base/parallel.h"
#include "heddle/base/profile.h"
#include "heddle/data/cache_file.h"
#include "heddle/text/strings/strings.h"

namespace heddle {

namespace {

// --- the file: written as a stream, checked when opened ---

/// Last bytes of a cache file. Layout of the file, in the byte order of the machine:
///   ids      uint16 or uint32: source then target of pair 0, of pair 1, ..; zeros up to 8 bytes
///   offsets  uint64[pairs + 1]: id at which each pair begins
///   lengths  int32[pairs] of the sources, int32[pairs] of the targets
///   footer   this struct
/// The footer comes last because it is known last, and because a file cut short lacks it.
struct CacheFooter {
  uint64_t magic = 0;
  uint64_t key = 0;
  int64_t id_bytes = 0;  ///< 2 or 4
  CorpusReport report;
  uint64_t content_hash = 0;  ///< of all bytes before the footer, see hash_blocks()
  uint64_t footer_hash = 0;   ///< of the fields above
};

constexpr uint64_t kMagic = 0x316e656b6f746468u;  // "hdtoken1"
constexpr size_t kFooter = sizeof(CacheFooter);
constexpr size_t kHashed = offsetof(CacheFooter, footer_hash);

static_assert(std::is_trivially_copyable_v<CacheFooter> && kFooter == 15 * sizeof(int64_t),
              "the footer is stored as it lies in memory, without gaps");

uint64_t footer_hash(const CacheFooter& footer) {
  return xxh64(std::as_bytes(std::span(&footer, 1)).first(kHashed));
}

/// Writes a cache file through a sink, pair by pair. Memory: 8 bytes a pair and one block.
class CacheWriter {
 public:
  /// id_bytes: 2 or 4.
  CacheWriter(const ByteSink& sink, int id_bytes) : sink_(sink), out_(sink), id_bytes_(id_bytes) {}

  void add_pair(std::span<const int32_t> source, std::span<const int32_t> target) {
    add_ids(source);
    add_ids(target);
    source_lengths_.push_back(static_cast<int32_t>(source.size()));
    target_lengths_.push_back(static_cast<int32_t>(target.size()));
  }

  void finish(uint64_t key, const CorpusReport& report) {
    out_.pad();
    uint64_t offset = 0;
    out_.put(&offset, sizeof offset);
    for (size_t i = 0; i < source_lengths_.size(); ++i) {
      offset +=
          static_cast<uint64_t>(source_lengths_[i]) + static_cast<uint64_t>(target_lengths_[i]);
      out_.put(&offset, sizeof offset);
    }
    out_.put(source_lengths_.data(), source_lengths_.size() * sizeof(int32_t));
    out_.put(target_lengths_.data(), target_lengths_.size() * sizeof(int32_t));

    CacheFooter footer{.magic = kMagic,
                       .key = key,
                       .id_bytes = id_bytes_,
                       .report = report,
                       .content_hash = out_.finish()};
    footer.footer_hash = footer_hash(footer);
    sink_(std::as_bytes(std::span(&footer, 1)));
  }

 private:
  void add_ids(std::span<const int32_t> ids) {
    if (id_bytes_ == 4) return out_.put(ids.data(), ids.size_bytes());
    for (const int32_t id : ids) {
      const auto narrow = static_cast<uint16_t>(id);
      out_.put(&narrow, sizeof narrow);
    }
  }

  const ByteSink& sink_;
  HashedWriter out_;
  int id_bytes_;
  std::vector<int32_t> source_lengths_, target_lengths_;
};

/// A cache file that was found to be whole.
struct CacheView {
  MappedFile file;
  CacheFooter footer;
  const std::byte* ids;
  std::span<const uint64_t> offsets;
  std::span<const int32_t> source_lengths, target_lengths;
};

/// Points the view at its parts; what is wrong with the sizes, or "".
std::string lay_out(CacheView& view, uint64_t key) {
  const std::span<const std::byte> bytes = view.file.bytes();
  if (bytes.size() < kFooter) return "it is too short";
  std::memcpy(&view.footer, bytes.data() + bytes.size() - kFooter, kFooter);
  const CacheFooter& footer = view.footer;
  if (bytes.size() % 8 != 0 || footer.magic != kMagic) return "it was cut short or is no cache";
  if (footer.footer_hash != footer_hash(footer)) return "its footer was altered";
  if (footer.key != key) return "it belongs to another corpus";
  // Bounds before products: a forged footer may hold any number.
  const auto limit = static_cast<int64_t>(bytes.size());
  const CorpusReport& report = footer.report;
  const int64_t ids = footer.id_bytes;
  const bool is_sane = (ids == 2 || ids == 4) && report.pairs >= 0 && report.pairs <= limit &&
                       report.source_tokens >= 0 && report.source_tokens <= limit &&
                       report.target_tokens >= 0 && report.target_tokens <= limit;
  if (!is_sane) return "its sizes make no sense";
  const auto pairs = static_cast<size_t>(report.pairs);
  const size_t id_size =
      round_up_8(static_cast<size_t>((report.source_tokens + report.target_tokens) * ids));
  if (bytes.size() != id_size + 8 * (pairs + 1) + 8 * pairs + kFooter) {
    return "its size is not what its footer says";
  }
  view.ids = bytes.data();
  const std::byte* offsets = bytes.data() + id_size;
  const std::byte* lengths = offsets + 8 * (pairs + 1);
  view.offsets = {reinterpret_cast<const uint64_t*>(offsets), pairs + 1};
  view.source_lengths = {reinterpret_cast<const int32_t*>(lengths), pairs};
  view.target_lengths = {reinterpret_cast<const int32_t*>(lengths) + pairs, pairs};
  return "";
}

/// Every sentence lies inside the ids: holds for each file that heddle wrote, checked so that no
/// file at all can make a reader leave the mapping.
bool are_offsets_sound(const CacheView& view) {
  const CorpusReport& report = view.footer.report;
  for (size_t i = 0; i < view.source_lengths.size(); ++i) {
    const int64_t source = view.source_lengths[i], target = view.target_lengths[i];
    const uint64_t begin = view.offsets[i], end = view.offsets[i + 1];
    if (source < 0 || target < 0 || end < begin) return false;
    if (end - begin != static_cast<uint64_t>(source + target)) return false;
  }
  return view.offsets.front() == 0 &&
         view.offsets.back() == static_cast<uint64_t>(report.source_tokens + report.target_tokens);
}

/// Opens a cache file and checks all of it (sizes, hashes, offsets), at the speed of the memory or
/// the disk. Returns nothing, and in `fault` what is wrong, if it is not exactly as written.
/// Errors: system if it cannot be read.
std::optional<CacheView> open_cache_file(const std::string& path, uint64_t key,
                                         std::string& fault) {
  fault = "it is empty";
  if (file_size(path) == 0) return std::nullopt;
  CacheView view{MappedFile(path), {}, nullptr, {}, {}, {}};
  fault = lay_out(view, key);
  if (!fault.empty()) return std::nullopt;
  fault = "its contents were altered";
  const auto content = view.file.bytes().first(view.file.size() - kFooter);
  if (hash_blocks(content) != view.footer.content_hash) return std::nullopt;
  return are_offsets_sound(view) ? std::optional(std::move(view)) : std::nullopt;
}

// --- making it ---

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
                 const CorpusOptions& options) {
  pair.is_empty = is_blank(pair.source_text) || is_blank(pair.target_text);
  if (pair.is_empty) return;
  pair.is_too_long =
      pair.source_text.size() > kLongestText || pair.target_text.size() > kLongestText;
  if (pair.is_too_long) return;
  pair.source = encode_checked(encoder, pair.source_text);
  pair.target = encode_checked(target_encoder, pair.target_text);
  pair.is_empty = pair.source.empty() || pair.target.empty();
  pair.is_too_long =
      std::ssize(pair.source) + 1 > options.max_source_tokens ||  // + 1: the end token
      std::ssize(pair.target) + 1 > options.max_target_tokens;
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
  const TextEncoder& target = options.target_encoder ? *options.target_encoder : encoder;
  write_file_atomic(path, [&](const ByteSink& sink) {
    CacheWriter writer(sink, std::max(encoder.vocab_size, target.vocab_size) <= 65536 ? 2 : 4);
    ParallelReader reader(options.files);
    CorpusReport report;
    std::vector<CachedPair> block;
    while (const size_t count = read_block(reader, block)) {
      parallel_blocks(static_cast<int64_t>(count), kThreadPairs, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          encode_pair(block[static_cast<size_t>(i)], encoder, target, options);
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
          options.files.source, options.files.target, report.str(), options.max_source_tokens,
          options.max_target_tokens);
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

}  // namespace

struct TokenizedCorpus::Impl {
  CacheView view;
  std::string key;
};

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
  const auto open = [&](std::string& fault) { return open_cache_file(path, key, fault); };
  CacheView view = open_or_build_cache(path, log, open, [&] {
    const auto start = std::chrono::steady_clock::now();
    build(options, encoder, key, path);
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    say(fmt::format("{}: tokenised in {:.1f} s", options.name, seconds.count()));
  });
  say(fmt::format("{}: {}", options.name, view.footer.report.str()));
  return TokenizedCorpus(std::make_shared<const Impl>(Impl{std::move(view), key_text}));
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
