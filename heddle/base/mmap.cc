// A file mapped into memory.
#include "heddle/base/mmap.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "heddle/base/error.h"
#include "heddle/base/files.h"

namespace heddle {

MappedFile::MappedFile(const std::string& path, Mapping mapping) : path_(path), mapping_(mapping) {
  const int64_t size = file_size(path);  // refuses folders and pipes
  check(size > 0, ErrorKind::data, "{}: the file is empty (0 bytes)", path);
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) fail_errno("cannot open", path, errno);
  // MAP_NORESERVE: pages that nobody writes to need no memory beside the system's cache.
  const bool own = mapping == Mapping::own_copy;
  void* start = mmap(nullptr, static_cast<size_t>(size), own ? PROT_READ | PROT_WRITE : PROT_READ,
                     MAP_PRIVATE | (own ? MAP_NORESERVE : 0), fd, 0);
  const int error = errno;
  close(fd);
  if (start == MAP_FAILED) fail_errno("cannot map into memory", path, error);
  bytes_ = {static_cast<std::byte*>(start), static_cast<size_t>(size)};
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) munmap(bytes_.data(), bytes_.size());
}

std::span<std::byte> MappedFile::writable_bytes() {
  check(mapping_ == Mapping::own_copy, ErrorKind::internal, "{}: mapped read only", path_);
  return bytes_;
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)),
      bytes_(std::exchange(other.bytes_, {})),
      mapping_(other.mapping_) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(bytes_, other.bytes_);
  std::swap(mapping_, other.mapping_);
  return *this;
}

}  // namespace heddle
