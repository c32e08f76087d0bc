// Random tokens, and the names of their rows; folders for models that are read from files.
#include "heddle/bench/model_work.h"

#include <stdlib.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "heddle/base/error.h"
#include "heddle/tensor/storage.h"

namespace heddle::bench {

RngStream random_numbers() { return RngStream(make_key(1, 0, hash_name("bench"))); }

std::vector<int32_t> random_tokens(RngStream& random, int64_t n, int64_t vocab, int64_t first) {
  std::vector<int32_t> tokens(n);
  for (int32_t& w : tokens) w = static_cast<int32_t>(first + random.below(vocab - first));
  return tokens;
}

void name_rows(const Segments& segments, std::vector<uint32_t>& sample,
               std::vector<uint32_t>& position) {
  for (int64_t i = 0; i < segments.count(); ++i) {
    for (int64_t r = 0; r < segments.length(i); ++r) {
      sample.push_back(static_cast<uint32_t>(i));
      position.push_back(static_cast<uint32_t>(r));
    }
  }
}

void forget_peak_memory() {
  release_cached_memory();
  std::ofstream("/proc/self/clear_refs") << 5;
}

TemporaryFolder::TemporaryFolder()
    : path((std::filesystem::temp_directory_path() / "heddle-bench-XXXXXX").string()) {
  check(mkdtemp(path.data()) != nullptr, ErrorKind::system, "bench: cannot make the folder {}: {}",
        path, std::strerror(errno));
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path, ignored);
}

}  // namespace heddle::bench
