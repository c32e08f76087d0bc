// What files share that are made once out of the user's and then mapped into memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "heddle/base/error.h"
#include "heddle/base/files/files.h"

namespace heddle {

/// Says something to the user, without a line end.
using CacheLog = std::function<void(std::string_view)>;

/// Writes to a sink by blocks of 4 MiB, of each of which it takes the checksum.
class HashedWriter {
 public:
  explicit HashedWriter(const ByteSink& sink) : sink_(sink) {}

  void put(const void* data, size_t size);
  /// Zeros up to a multiple of 8 bytes.
  void pad();
  /// Writes what is left; the checksum of all, as hash_blocks() computes it.
  uint64_t finish();
  uint64_t size() const { return size_; }

 private:
  void flush();

  const ByteSink& sink_;
  std::vector<std::byte> buffer_;  // of the block that is being filled
  std::vector<uint64_t> hashes_;   // of those before it
  uint64_t size_ = 0;
};

/// XXH64 of each block of 4 MiB, and XXH64 of these; on all threads.
uint64_t hash_blocks(std::span<const std::byte> bytes);

/// The next multiple of 8.
constexpr size_t round_up_8(size_t n) { return (n + 7) / 8 * 8; }

/// Removes what killed builds of the files NAME* in a folder left; another process that builds one
/// now would have its file taken away and fail, so only files untouched for long go.
void remove_leftovers(const std::string& folder, const std::string& name);

/// Opens a cache file, or makes it where it is missing or not as it was written; the log hears of
/// that. open(fault) gives an optional view of the file, and in `fault` what is wrong with it;
/// build() writes it. Errors: theirs; system if the file reads back otherwise than it was written.
template <class Open, class Build>
auto open_or_build_cache(const std::string& path, const CacheLog& log, const Open& open,
                         const Build& build) {
  std::string fault;
  decltype(open(fault)) view;
  if (path_exists(path)) {
    view = open(fault);
    if (!view && log) log(fmt::format("{}: not usable ({}); making it anew", path, fault));
  }
  if (!view) {
    build();
    view = open(fault);
    check(view.has_value(), ErrorKind::system,
          "{}: reads back otherwise than it was written ({}); is the disk failing?", path, fault);
  }
  return std::move(*view);
}

}  // namespace heddle
