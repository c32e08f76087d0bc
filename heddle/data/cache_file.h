// The file format of the token cache: written as a stream, checked when opened.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "heddle/base/files/files.h"
#include "heddle/base/files/mmap.h"
#include "heddle/data/parallel_text.h"

namespace heddle {

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
  uint64_t content_hash = 0;  ///< of all bytes before the footer: XXH64 of each
                              ///< block of 4 MiB, and XXH64 of these
  uint64_t footer_hash = 0;   ///< of the fields above
};

/// Writes a cache file through a sink, pair by pair. Memory: 8 bytes a pair and one block.
class CacheWriter {
 public:
  /// id_bytes: 2 or 4.
  CacheWriter(const ByteSink& sink, int id_bytes);
  void add_pair(std::span<const int32_t> source, std::span<const int32_t> target);
  void finish(uint64_t key, const CorpusReport& report);

 private:
  void add_ids(std::span<const int32_t> ids);
  void put(const void* data, size_t size);
  void flush();

  const ByteSink& sink_;
  int id_bytes_;
  std::vector<std::byte> buffer_;  // of the block that is being filled
  std::vector<uint64_t> hashes_;   // of those before it
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

/// Opens a cache file and checks all of it (sizes, hashes, offsets), at the speed of the memory or
/// the disk. Returns nothing, and in `fault` what is wrong, if it is not exactly as written.
/// Errors: system if it cannot be read.
std::optional<CacheView> open_cache_file(const std::string& path, uint64_t key, std::string& fault);

}  // namespace heddle
