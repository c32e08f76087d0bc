// The file format of the token cache.
#include "heddle/data/cache_file.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "heddle/base/error.h"
#include "heddle/base/parallel.h"

namespace heddle {

namespace {

constexpr uint64_t kMagic = 0x316e656b6f746468u;  // "hdtoken1"
constexpr size_t kFooter = sizeof(CacheFooter);
constexpr size_t kBlock = size_t{4} << 20;  // of bytes that are hashed together
constexpr size_t kHashed = offsetof(CacheFooter, footer_hash);

static_assert(std::is_trivially_copyable_v<CacheFooter> && kFooter == 15 * sizeof(int64_t),
              "the footer is stored as it lies in memory, without gaps");

uint64_t footer_hash(const CacheFooter& footer) {
  return xxh64(std::as_bytes(std::span(&footer, 1)).first(kHashed));
}

size_t round_up_8(size_t n) { return (n + 7) / 8 * 8; }

}  // namespace

CacheWriter::CacheWriter(const ByteSink& sink, int id_bytes) : sink_(sink), id_bytes_(id_bytes) {}

void CacheWriter::put(const void* data, size_t size) {
  std::span<const std::byte> bytes(static_cast<const std::byte*>(data), size);
  while (!bytes.empty()) {
    const auto part = bytes.first(std::min(bytes.size(), kBlock - buffer_.size()));
    buffer_.insert(buffer_.end(), part.begin(), part.end());
    bytes = bytes.subspan(part.size());
    if (buffer_.size() == kBlock) flush();
  }
}

void CacheWriter::flush() {
  if (buffer_.empty()) return;
  hashes_.push_back(xxh64(buffer_));
  sink_(buffer_);
  buffer_.clear();
}

void CacheWriter::add_ids(std::span<const int32_t> ids) {
  if (id_bytes_ == 4) return put(ids.data(), ids.size_bytes());
  for (const int32_t id : ids) {
    const auto narrow = static_cast<uint16_t>(id);
    put(&narrow, sizeof narrow);
  }
}

void CacheWriter::add_pair(std::span<const int32_t> source, std::span<const int32_t> target) {
  add_ids(source);
  add_ids(target);
  source_lengths_.push_back(static_cast<int32_t>(source.size()));
  target_lengths_.push_back(static_cast<int32_t>(target.size()));
}

void CacheWriter::finish(uint64_t key, const CorpusReport& report) {
  uint64_t offset = 0;
  for (size_t i = 0; i < source_lengths_.size(); ++i) {
    offset += static_cast<uint64_t>(source_lengths_[i]) + static_cast<uint64_t>(target_lengths_[i]);
  }
  const size_t bytes = offset * static_cast<size_t>(id_bytes_);
  const uint64_t zeros = 0;
  put(&zeros, round_up_8(bytes) - bytes);
  offset = 0;
  put(&offset, sizeof offset);
  for (size_t i = 0; i < source_lengths_.size(); ++i) {
    offset += static_cast<uint64_t>(source_lengths_[i]) + static_cast<uint64_t>(target_lengths_[i]);
    put(&offset, sizeof offset);
  }
  put(source_lengths_.data(), source_lengths_.size() * sizeof(int32_t));
  put(target_lengths_.data(), target_lengths_.size() * sizeof(int32_t));
  flush();

  CacheFooter footer;
  footer.magic = kMagic;
  footer.key = key;
  footer.id_bytes = id_bytes_;
  footer.report = report;
  footer.content_hash = xxh64(std::as_bytes(std::span(hashes_)));
  footer.footer_hash = footer_hash(footer);
  sink_(std::as_bytes(std::span(&footer, 1)));
}

namespace {

uint64_t content_hash(std::span<const std::byte> bytes) {
  std::vector<uint64_t> hashes((bytes.size() + kBlock - 1) / kBlock);
  parallel_for(static_cast<int64_t>(hashes.size()), [&](int64_t i) {
    const size_t begin = static_cast<size_t>(i) * kBlock;
    hashes[i] = xxh64(bytes.subspan(begin, std::min(kBlock, bytes.size() - begin)));
  });
  return xxh64(std::as_bytes(std::span(hashes)));
}

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
    if (source < 0 || target < 0) return false;
    if (view.offsets[i + 1] - view.offsets[i] != static_cast<uint64_t>(source + target)) {
      return false;
    }
    if (view.offsets[i + 1] < view.offsets[i]) return false;
  }
  return view.offsets.front() == 0 &&
         view.offsets.back() == static_cast<uint64_t>(report.source_tokens + report.target_tokens);
}

}  // namespace

std::optional<CacheView> open_cache_file(const std::string& path, uint64_t key,
                                         std::string& fault) {
  if (file_size(path) == 0) {
    fault = "it is empty";
    return std::nullopt;
  }
  CacheView view{MappedFile(path), {}, nullptr, {}, {}, {}};
  fault = lay_out(view, key);
  if (!fault.empty()) return std::nullopt;
  const auto content = view.file.bytes().first(view.file.size() - kFooter);
  if (content_hash(content) != view.footer.content_hash || !are_offsets_sound(view)) {
    fault = "its contents were altered";
    return std::nullopt;
  }
  return view;
}

}  // namespace heddle
