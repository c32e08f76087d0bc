// Makes a cache of tokens as large as is asked for out of a small one of the same corpus: its ids
// are zeros that the file system does not store, pairs of 250 tokens a side.
// usage: heddle_sparse_cache CACHE GIGABYTES    replaces CACHE (RUN/cache/*.tokens)
#include <fmt/format.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "heddle/base/error.h"
#include "heddle/base/files/files.h"
#include "heddle/base/files/mmap.h"
#include "heddle/data/cache_file.h"
#include "heddle/data/parallel_text.h"

namespace {

using heddle::CorpusReport;

// As heddle/data/token_cache.cc has it.
struct Footer {
  uint64_t magic, key;
  int64_t id_bytes;
  CorpusReport report;
  uint64_t content_hash, footer_hash;
};

void write_all(std::FILE* file, const void* data, size_t size) {
  heddle::check(std::fwrite(data, 1, size, file) == size, heddle::ErrorKind::system,
                "the cache cannot be written");
}

void make(const std::string& path, int64_t gigabytes) {
  constexpr int64_t kSide = 250;
  const std::string old = heddle::read_file(path);
  Footer footer;
  std::memcpy(&footer, old.data() + old.size() - sizeof footer, sizeof footer);
  const int64_t pairs = gigabytes * 1'000'000'000 / (2 * kSide * footer.id_bytes);
  footer.report = {.lines = pairs,
                   .pairs = pairs,
                   .source_tokens = pairs * kSide,
                   .target_tokens = pairs * kSide};
  heddle::remove_path(path);
  std::FILE* const file = std::fopen(path.c_str(), "w+b");
  heddle::check(file != nullptr, heddle::ErrorKind::system, "{}: cannot be made", path);
  const int64_t ids = (2 * kSide * pairs * footer.id_bytes + 7) / 8 * 8;
  heddle::check(ftruncate(fileno(file), ids) == 0 && std::fseek(file, 0, SEEK_END) == 0,
                heddle::ErrorKind::system, "{}: cannot be made so long", path);
  for (int64_t i = 0; i <= pairs; ++i) {
    const auto offset = static_cast<uint64_t>(2 * kSide * i);
    write_all(file, &offset, sizeof offset);
  }
  const std::vector<int32_t> lengths(1 << 16, kSide);
  for (int64_t left = 2 * pairs; left > 0;) {
    const int64_t some = std::min<int64_t>(left, std::ssize(lengths));
    write_all(file, lengths.data(), static_cast<size_t>(some) * sizeof(int32_t));
    left -= some;
  }
  std::fflush(file);
  {
    const heddle::MappedFile content(path);
    footer.content_hash = heddle::hash_blocks(content.bytes());
  }
  const auto fields = std::as_bytes(std::span(&footer, 1)).first(offsetof(Footer, footer_hash));
  footer.footer_hash = heddle::xxh64(fields);
  write_all(file, &footer, sizeof footer);
  heddle::check(std::fclose(file) == 0, heddle::ErrorKind::system, "{}: cannot be closed", path);
  fmt::print("{}: {} pairs\n", path, pairs);
}

}  // namespace

int main(int count, char** words) {
  try {
    heddle::check(count == 3, heddle::ErrorKind::usage, "usage: heddle_sparse_cache CACHE GB");
    make(words[1], std::atoll(words[2]));
    return 0;
  } catch (const heddle::Error& error) {
    fmt::print(stderr, "{}\n", error.what());
    return error.exit_code();
  }
}
