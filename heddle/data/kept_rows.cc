// A row in the file: XXH64 of its floats (seeded by its number), the floats, zeros up to 8 bytes.
#include "heddle/data/kept_rows.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "heddle/base/error.h"
#include "heddle/base/log.h"
#include "heddle/data/cache_file.h"

namespace heddle {
namespace {

// Never that of a hole: XXH64 of zeros is not 0.
uint64_t hash_of(int64_t row, std::span<const float> values) {
  return xxh64(std::as_bytes(values), static_cast<uint64_t>(row));
}

}  // namespace

KeptRows::KeptRows(const std::string& path, int64_t width)
    : path_(path), file_(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666)), width_(width) {
  if (file_.fd < 0) fail_errno("cannot write", path, errno);
}

int64_t KeptRows::row_bytes(int64_t width) {
  return static_cast<int64_t>(
      round_up_8(sizeof(uint64_t) + static_cast<size_t>(width) * sizeof(float)));
}

bool KeptRows::read(int64_t row, std::span<float> to) const {
  check(std::ssize(to) == width_, ErrorKind::internal, "{} floats of a row of {}", to.size(),
        width_);
  const int64_t bytes = row_bytes(width_);
  std::vector<std::byte> record(static_cast<size_t>(bytes));
  const ssize_t n = pread(file_.fd, record.data(), record.size(), row * bytes);
  if (n < 0 && errno != EINTR) fail_errno("cannot read", path_, errno);
  if (n != bytes) return false;
  uint64_t hash = 0;
  std::memcpy(&hash, record.data(), sizeof hash);
  std::memcpy(to.data(), record.data() + sizeof hash, to.size_bytes());
  return hash == hash_of(row, to);
}

void KeptRows::write(int64_t row, std::span<const float> from) {
  check(std::ssize(from) == width_, ErrorKind::internal, "{} floats of a row of {}", from.size(),
        width_);
  if (is_full_) return;
  const int64_t bytes = row_bytes(width_);
  std::vector<std::byte> record(static_cast<size_t>(bytes));
  const uint64_t hash = hash_of(row, from);
  std::memcpy(record.data(), &hash, sizeof hash);
  std::memcpy(record.data() + sizeof hash, from.data(), from.size_bytes());
  const ssize_t n = pwrite(file_.fd, record.data(), record.size(), row * bytes);
  if (n == bytes || (n < 0 && errno == EINTR)) return;  // one that is not there comes again
  is_full_ = true;
  log_warning("{}: cannot be written ({}); what it would keep is computed each time", path_,
              n < 0 ? std::strerror(errno) : "the disk is full");
}

}  // namespace heddle
