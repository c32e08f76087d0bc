// Whole files: reading, atomic writing, folders.
#include "heddle/base/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "heddle/base/error.h"

namespace heddle {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kTemporaryMark = ".tmp-";

/// A file descriptor that closes itself.
struct Descriptor {
  int fd;
  explicit Descriptor(int f) : fd(f) {}
  ~Descriptor() {
    if (fd >= 0) close(fd);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
};

/// The half-written file: removed unless it was renamed.
struct Temporary {
  std::string path;
  bool is_kept = false;
  ~Temporary() {
    if (!is_kept) unlink(path.c_str());
  }
};

void write_all(int fd, std::span<const std::byte> bytes, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t n = write(fd, bytes.data(), std::min<size_t>(bytes.size(), size_t{1} << 30));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail_errno("cannot write", path, errno);
    bytes = bytes.subspan(static_cast<size_t>(n));
  }
}

std::string temporary_name(const std::string& path) {
  static std::atomic<int> count{0};
  return fmt::format("{}{}{}-{}", path, kTemporaryMark, getpid(), count++);
}

}  // namespace

void fail_errno(std::string_view what, const std::string& path, int error) {
  const bool is_wrong_path = error == ENOENT || error == ENOTDIR || error == EISDIR ||
                             error == ELOOP || error == ENAMETOOLONG || error == EEXIST;
  fail(is_wrong_path ? ErrorKind::data : ErrorKind::system, "{}: {}: {}{}", path, what,
       std::strerror(error),
       error == EFBIG ? " (the limit of a file's size, see ulimit -f, or the file system's)" : "");
}

bool path_exists(const std::string& path) {
  struct stat info;
  return stat(path.c_str(), &info) == 0;
}

bool is_directory(const std::string& path) {
  struct stat info;
  return stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

int64_t file_size(const std::string& path) {
  struct stat info;
  if (stat(path.c_str(), &info) != 0) fail_errno("cannot open", path, errno);
  check(S_ISREG(info.st_mode), ErrorKind::data, "{}: is not a regular file", path);
  return info.st_size;
}

std::string join_path(const std::string& folder, const std::string& name) {
  if (folder.empty()) return name;
  return folder.back() == '/' ? folder + name : folder + "/" + name;
}

std::string parent_path(const std::string& path) {
  const std::string parent = fs::path(path).parent_path().string();
  return parent.empty() ? "." : parent;
}

std::string read_file(const std::string& path) {
  Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.fd < 0) fail_errno("cannot open", path, errno);
  std::string text;
  struct stat info;
  if (fstat(file.fd, &info) == 0 && info.st_size > 0 && S_ISREG(info.st_mode)) {
    text.reserve(static_cast<size_t>(info.st_size) + 1);
  }
  constexpr size_t kChunk = 1 << 18;
  for (size_t size = 0;;) {
    text.resize(size + kChunk);
    const ssize_t n = read(file.fd, text.data() + size, kChunk);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail_errno("cannot read", path, errno);
    size += static_cast<size_t>(n);
    if (n == 0) {
      text.resize(size);
      return text;
    }
  }
}

void write_file_atomic(const std::string& path, std::string_view text) {
  write_file_atomic(path, [&](const ByteSink& sink) { sink(std::as_bytes(std::span(text))); });
}

void write_file_atomic(const std::string& path,
                       const std::function<void(const ByteSink&)>& writer) {
  Temporary temporary{temporary_name(path)};
  Descriptor file(open(temporary.path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (file.fd < 0) {
    const int error = errno;
    temporary.is_kept = true;  // it was never made
    fail_errno("cannot write", path, error);
  }
  writer([&](std::span<const std::byte> bytes) { write_all(file.fd, bytes, path); });
  if (fsync(file.fd) != 0) fail_errno("cannot write", path, errno);
  const int fd = file.fd;
  file.fd = -1;
  if (close(fd) != 0) fail_errno("cannot write", path, errno);
  if (rename(temporary.path.c_str(), path.c_str()) != 0) fail_errno("cannot write", path, errno);
  temporary.is_kept = true;
  sync_directory(parent_path(path));
}

bool is_temporary_name(std::string_view name) {
  const size_t mark = name.rfind(kTemporaryMark);
  if (mark == std::string_view::npos || mark == 0) return false;
  const std::string_view tail = name.substr(mark + kTemporaryMark.size());
  return tail.find('-') != std::string_view::npos &&
         tail.find_first_not_of("0123456789-") == std::string_view::npos;
}

void make_directories(const std::string& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error) fail_errno("cannot create the folder", path, error.value());
  check(is_directory(path), ErrorKind::data, "{}: is a file; a folder is needed", path);
}

std::vector<std::string> list_directory(const std::string& path) {
  std::error_code error;
  std::vector<std::string> names;
  fs::directory_iterator it(path, error);
  while (!error && it != fs::directory_iterator()) {
    names.push_back(it->path().filename().string());
    it.increment(error);
  }
  if (error) fail_errno("cannot list the folder", path, error.value());
  std::sort(names.begin(), names.end());
  return names;
}

void remove_path(const std::string& path) {
  std::error_code error;
  fs::remove_all(path, error);
  if (error && error.value() != ENOENT) fail_errno("cannot remove", path, error.value());
}

void rename_path(const std::string& from, const std::string& to) {
  if (rename(from.c_str(), to.c_str()) != 0) {
    fail_errno(fmt::format("cannot rename {} to it", from), to, errno);
  }
  sync_directory(parent_path(to));
}

void sync_directory(const std::string& path) {
  Descriptor folder(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder.fd < 0) fail_errno("cannot open the folder", path, errno);
  // Some file systems refuse fsync of a folder (EINVAL): they have nothing to sync there.
  if (fsync(folder.fd) != 0 && errno != EINVAL) fail_errno("cannot sync the folder", path, errno);
}

}  // namespace heddle
