// A file mapped into memory, read only.
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

MappedFile::MappedFile(const std::string& path) : path_(path) {
  const int64_t size = file_size(path);  // refuses folders and pipes
  check(size > 0, ErrorKind::data, "{}: the file is empty (0 bytes)", path);
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) fail_errno("cannot open", path, errno);
  void* start = mmap(nullptr, static_cast<size_t>(size), PROT_READ, MAP_PRIVATE, fd, 0);
  const int error = errno;
  close(fd);
  if (start == MAP_FAILED) fail_errno("cannot map into memory", path, error);
  bytes_ = {static_cast<const std::byte*>(start), static_cast<size_t>(size)};
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)), bytes_(std::exchange(other.bytes_, {})) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

}  // namespace heddle
