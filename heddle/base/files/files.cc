// Whole files and folders: reading, atomic writing, temporary names, checksums.
#include "heddle/base/files/files.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "heddle/base/error.h"
#include "heddle/base/files/mmap.h"
#include "heddle/base/parallel.h"
#include "heddle/base/work_notes.h"

namespace heddle {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kTemporaryMark = ".tmp-";
constexpr size_t kTemporaryDigits = 16;
constexpr size_t kMostOfPipe = size_t{256} << 20;  // /dev/zero has no end

bool is_below(const fs::path& path, const fs::path& folder) {
  const auto [end, unused] = std::mismatch(folder.begin(), folder.end(), path.begin(), path.end());
  return end == folder.end() || (end->empty() && std::next(end) == folder.end());
}

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
    constexpr size_t kAtOnce = size_t{1} << 26;
    const ssize_t n = write(fd, bytes.data(), std::min(bytes.size(), kAtOnce));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail_errno("cannot write", path, errno);
    bytes = bytes.subspan(static_cast<size_t>(n));
    note_work();
  }
}

void write_by(const std::function<void(const ByteSink&)>& writer, int fd, const std::string& path) {
  constexpr size_t kMost = 1 << 16;
  std::vector<std::byte> small;  // pieces, since a call for each costs more than its bytes
  const auto flush = [&] {
    write_all(fd, small, path);
    small.clear();
  };
  writer([&](std::span<const std::byte> bytes) {
    if (small.size() + bytes.size() > kMost) flush();
    if (bytes.size() > kMost) return write_all(fd, bytes, path);
    small.insert(small.end(), bytes.begin(), bytes.end());
  });
  flush();
}

/// Where the bytes for a path go.
struct Destination {
  std::string path;                ///< the path behind all links
  std::optional<struct stat> old;  ///< what stands there
  bool is_of_proc = false;         ///< an entry of /proc/PID/fd: an open file, whatever its name
};

bool is_of_proc(const std::string& folder) {
  struct statfs info;
  return statfs(folder.c_str(), &info) == 0 && info.f_type == PROC_SUPER_MAGIC;
}

Destination find_destination(const std::string& path) {
  constexpr int kMostLinks = 40;  // as the kernel follows
  Destination d{path, {}};
  for (int links = 0;; ++links) {
    struct stat info;
    if (lstat(d.path.c_str(), &info) != 0) return d;
    if (!S_ISLNK(info.st_mode)) {
      d.old = info;
      return d;
    }
    if (links == kMostLinks) fail_errno("cannot write", path, ELOOP);
    const std::string folder = parent_path(d.path);
    if (is_of_proc(folder)) {
      d.is_of_proc = true;
      return d;
    }
    std::error_code error;
    const fs::path target = fs::read_symlink(d.path, error);
    if (error) fail_errno("cannot write", path, error.value());
    d.path = fs::path(folder) / target;  // the target alone if it begins at the root
  }
}

/// The number of a descriptor of our own that an entry of /proc names; -1: of another process.
int own_descriptor(const std::string& path) {
  std::error_code error;
  const bool is_own = fs::equivalent(parent_path(path), "/proc/self/fd", error);
  const std::string name = fs::path(path).filename().string();
  const bool is_number =
      !name.empty() && name.size() < 9 && name.find_first_not_of("0123456789") == name.npos;
  return is_own && is_number ? std::stoi(name) : -1;
}

/// Devices, pipes and open files take the bytes as they come: there is nothing to rename over.
void write_through(const std::string& path, const Destination& to,
                   const std::function<void(const ByteSink&)>& writer) {
  const int own = to.is_of_proc ? own_descriptor(to.path) : -1;
  if (own == STDOUT_FILENO) std::fflush(stdout);  // what was printed before stands before
  const Descriptor file(own >= 0 ? fcntl(own, F_DUPFD_CLOEXEC, 0)
                                 : open(to.path.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY));
  if (file.fd < 0) fail_errno("cannot write", path, errno);
  write_by(writer, file.fd, path);
}

/// Opens a file that nobody else has, beside the one that it is to replace.
int open_temporary(Temporary& temporary, const Destination& to, const std::string& path) {
  // Not readable by others before it has the mode of the old one.
  const mode_t mode = to.old ? 0600 : 0666;
  for (;;) {
    temporary.path = temporary_name(to.path);
    const int fd = open(temporary.path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (fd >= 0) return fd;
    if (errno == EEXIST) continue;
    const int error = errno;
    temporary.is_kept = true;  // it was never made
    fail_errno("cannot write", path, error);
  }
}

/// Owner and permissions of the old file, as far as we may give them.
void keep_permissions(int fd, const struct stat& old) {
  struct stat made;
  if (fstat(fd, &made) != 0) return;
  if (made.st_uid != old.st_uid || made.st_gid != old.st_gid) {
    [[maybe_unused]] const int ignored = fchown(fd, old.st_uid, old.st_gid);
  }
  if (made.st_mode != old.st_mode) fchmod(fd, old.st_mode & 07777);
}

// XXH64, written from the xxHash specification 0.1.1. Refused alternatives: CRC-32C (32 bits are
// too few to key a cache of corpora by content), SHA-256 (0.3 GB/s without its instructions).
constexpr uint64_t kPrime1 = 0x9E3779B185EBCA87u, kPrime2 = 0xC2B2AE3D27D4EB4Fu,
                   kPrime3 = 0x165667B19E3779F9u, kPrime4 = 0x85EBCA77C2B2AE63u,
                   kPrime5 = 0x27D4EB2F165667C5u;

// How far ahead of the sums memory is asked for. From memory, 500 MB on two busy cores, one and two
// threads: 106 and 85-96 ms without, 57-65 and 47-51 ms with it (Xeon with AMX, 2026-11).
constexpr size_t kAhead = 4096;

static_assert(std::endian::native == std::endian::little, "lanes are read as little-endian");

template <class T>
uint64_t lane(const std::byte* p) {
  T value;
  std::memcpy(&value, p, sizeof value);
  return value;
}

uint64_t round(uint64_t sum, uint64_t value) {
  return std::rotl(sum + value * kPrime2, 31) * kPrime1;
}

}  // namespace

void fail_errno(std::string_view what, const std::string& path, int error) {
  const bool is_wrong_path = error == ENOENT || error == ENOTDIR || error == EISDIR ||
                             error == ELOOP || error == ENAMETOOLONG || error == EEXIST;
  fail(is_wrong_path ? ErrorKind::data : ErrorKind::system, "{}: {}: {}{}", path, what,
       std::strerror(error),
       error == EFBIG ? " (the limit of a file's size, see ulimit -f, or the file system's)" : "");
}

Descriptor::~Descriptor() {
  if (fd >= 0) close(fd);
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
  const bool is_regular = fstat(file.fd, &info) == 0 && S_ISREG(info.st_mode);
  if (is_regular && info.st_size > 0) text.reserve(static_cast<size_t>(info.st_size) + 1);
  constexpr size_t kChunk = 1 << 18;
  for (size_t size = 0;;) {
    text.resize(size + kChunk);
    const ssize_t n = read(file.fd, text.data() + size, kChunk);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail_errno("cannot read", path, errno);
    size += static_cast<size_t>(n);
    check(is_regular || size <= kMostOfPipe, ErrorKind::data,
          "{}: is no regular file, and gives more than {} MiB", path, kMostOfPipe >> 20);
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
  const Destination to = find_destination(path);
  if (to.old && S_ISDIR(to.old->st_mode)) fail_errno("cannot write", path, EISDIR);
  if (to.is_of_proc || (to.old && !S_ISREG(to.old->st_mode))) {
    return write_through(path, to, writer);
  }
  Temporary temporary;
  Descriptor file(open_temporary(temporary, to, path));
  if (to.old) keep_permissions(file.fd, *to.old);
  write_by(writer, file.fd, path);
  if (fsync(file.fd) != 0) fail_errno("cannot write", path, errno);
  if (close(std::exchange(file.fd, -1)) != 0) fail_errno("cannot write", path, errno);
  if (rename(temporary.path.c_str(), to.path.c_str()) != 0) {
    fail_errno("cannot write", path, errno);
  }
  temporary.is_kept = true;
  sync_directory(parent_path(to.path));
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

void sync_file(const std::string& path) {
  const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.fd < 0) fail_errno("cannot open", path, errno);
  if (fsync(file.fd) != 0) fail_errno("cannot write", path, errno);
}

std::string temporary_name(const std::string& path) {
  uint64_t random = 0;
  if (getrandom(&random, sizeof random, 0) != sizeof random) {
    fail_errno("cannot take random bits for a temporary name", path, errno);
  }
  return fmt::format("{}{}{:0{}x}", path, kTemporaryMark, random, kTemporaryDigits);
}

bool is_temporary_name(std::string_view name) {
  const size_t mark = name.rfind(kTemporaryMark);
  if (mark == std::string_view::npos || mark == 0) return false;
  const std::string_view tail = name.substr(mark + kTemporaryMark.size());
  return tail.size() == kTemporaryDigits &&
         tail.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

void write_folder_atomic(const std::string& path,
                         const std::function<void(const std::string& folder)>& writer) {
  const std::string temporary = temporary_name(path);
  try {
    make_directories(temporary);
    writer(temporary);
    sync_directory(temporary);
    if (std::rename(temporary.c_str(), path.c_str()) != 0) {
      fail_errno("cannot write", path, errno);
    }
  } catch (...) {
    std::error_code ignored;  // the error that is under way says more
    fs::remove_all(temporary, ignored);
    throw;
  }
  sync_directory(parent_path(path));
}

bool lies_inside(const std::string& path, const std::string& folder) {
  const auto by_name = [](const std::string& p) { return fs::absolute(p).lexically_normal(); };
  if (is_below(by_name(path), by_name(folder))) return true;
  std::error_code error;
  const fs::path real = fs::weakly_canonical(path, error);
  if (error) return false;
  const fs::path real_folder = fs::weakly_canonical(folder, error);
  return !error && is_below(real, real_folder);
}

uint64_t xxh64(std::span<const std::byte> bytes, uint64_t seed) {
  const std::byte* p = bytes.data();
  size_t left = bytes.size();
  uint64_t hash = seed + kPrime5;
  if (left >= 32) {
    std::array<uint64_t, 4> sums = {seed + kPrime1 + kPrime2, seed + kPrime2, seed, seed - kPrime1};
    for (; left >= 32; p += 32, left -= 32) {
      __builtin_prefetch(p + std::min(left, kAhead));
      for (size_t i = 0; i < 4; ++i) sums[i] = round(sums[i], lane<uint64_t>(p + 8 * i));
    }
    hash = std::rotl(sums[0], 1) + std::rotl(sums[1], 7) + std::rotl(sums[2], 12) +
           std::rotl(sums[3], 18);
    for (uint64_t sum : sums) hash = (hash ^ round(0, sum)) * kPrime1 + kPrime4;
  }
  hash += bytes.size();
  for (; left >= 8; p += 8, left -= 8) {
    hash = std::rotl(hash ^ round(0, lane<uint64_t>(p)), 27) * kPrime1 + kPrime4;
  }
  if (left >= 4) {
    hash = std::rotl(hash ^ (lane<uint32_t>(p) * kPrime1), 23) * kPrime2 + kPrime3;
    p += 4, left -= 4;
  }
  for (; left > 0; ++p, --left) {
    hash = std::rotl(hash ^ (lane<uint8_t>(p) * kPrime5), 11) * kPrime1;
  }
  hash = (hash ^ (hash >> 33)) * kPrime2;
  hash = (hash ^ (hash >> 29)) * kPrime3;
  return hash ^ (hash >> 32);
}

std::string checksum(std::span<const std::byte> bytes) {
  return fmt::format("{:016x}", xxh64(bytes));
}

std::string checksum(std::string_view text) { return checksum(std::as_bytes(std::span(text))); }

std::string checksum_file(const std::string& path) {
  if (file_size(path) == 0) return checksum(std::string_view());
  return checksum(MappedFile(path).bytes());
}

// zlib's, block by block on all threads.
uint32_t crc32(std::span<const std::byte> bytes) {
  constexpr int64_t kBlock = int64_t{1} << 22;
  const auto size = static_cast<int64_t>(bytes.size());
  std::vector<uLong> sums((size + kBlock - 1) / kBlock);
  parallel_blocks(size, kBlock, [&](int64_t begin, int64_t end) {
    const auto* part = reinterpret_cast<const Bytef*>(bytes.data() + begin);
    sums[begin / kBlock] = ::crc32(0, part, static_cast<uInt>(end - begin));
  });
  uLong sum = 0;
  for (int64_t begin = 0; begin < size; begin += kBlock) {
    sum = crc32_combine(sum, sums[begin / kBlock], std::min(kBlock, size - begin));
  }
  return static_cast<uint32_t>(sum);
}

}  // namespace heddle
