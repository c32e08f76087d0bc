// Blocks that are hashed as they are written and checked on all threads.
#include "heddle/data/cache_file.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <system_error>

#include "heddle/base/parallel.h"

namespace heddle {
namespace {

constexpr size_t kBlock = size_t{4} << 20;

}  // namespace

void HashedWriter::put(const void* data, size_t size) {
  std::span<const std::byte> bytes(static_cast<const std::byte*>(data), size);
  size_ += size;
  while (!bytes.empty()) {
    const auto part = bytes.first(std::min(bytes.size(), kBlock - buffer_.size()));
    buffer_.insert(buffer_.end(), part.begin(), part.end());
    bytes = bytes.subspan(part.size());
    if (buffer_.size() == kBlock) flush();
  }
}

void HashedWriter::pad() {
  constexpr uint64_t zeros = 0;
  put(&zeros, round_up_8(size_) - size_);
}

uint64_t HashedWriter::finish() {
  flush();
  return xxh64(std::as_bytes(std::span(hashes_)));
}

void HashedWriter::flush() {
  if (buffer_.empty()) return;
  hashes_.push_back(xxh64(buffer_));
  sink_(buffer_);
  buffer_.clear();
}

uint64_t hash_blocks(std::span<const std::byte> bytes) {
  std::vector<uint64_t> hashes((bytes.size() + kBlock - 1) / kBlock);
  parallel_blocks(static_cast<int64_t>(bytes.size()), kBlock, [&](int64_t begin, int64_t end) {
    hashes[begin / kBlock] = xxh64(bytes.subspan(begin, end - begin));
  });
  return xxh64(std::as_bytes(std::span(hashes)));
}

void remove_leftovers(const std::string& folder, const std::string& name) {
  for (const std::string& entry : list_directory(folder)) {
    if (!entry.starts_with(name) || !is_temporary_name(entry)) continue;
    const std::string path = join_path(folder, entry);
    std::error_code error;
    const auto changed = std::filesystem::last_write_time(path, error);
    const auto now = std::filesystem::file_time_type::clock::now();
    if (!error && now - changed > std::chrono::minutes(10)) remove_path(path);
  }
}

}  // namespace heddle
