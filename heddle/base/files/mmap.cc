// A file mapped into memory, and the list of all that are.
#include "heddle/base/files/mmap.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <utility>

#include "heddle/base/error.h"
#include "heddle/base/files/files.h"

namespace heddle {
namespace {

/// A mapped file as a signal handler may read it: nothing in it changes while it is in the list.
struct Record {
  std::span<const std::byte> bytes;
  std::string path;
  int fd;
  struct stat as_opened;
};

// More files than that are mapped all the same, but not watched over.
constexpr size_t kMostFiles = 1024;
std::mutex g_mutex;  // of those who add, remove and check
std::array<std::atomic<const Record*>, kMostFiles> g_files{};
static_assert(std::atomic<const Record*>::is_always_lock_free, "a signal handler takes no lock");

void add_record(Record&& record) {
  const std::lock_guard lock(g_mutex);
  for (auto& slot : g_files) {
    if (slot.load() != nullptr) continue;
    slot.store(new Record(std::move(record)));
    return;
  }
  close(record.fd);
}

void remove_record(std::span<const std::byte> bytes) {
  const std::lock_guard lock(g_mutex);
  for (auto& slot : g_files) {
    const Record* const record = slot.load();
    if (record == nullptr || record->bytes.data() != bytes.data()) continue;
    slot.store(nullptr);
    close(record->fd);
    delete record;
    return;
  }
}

void put(const char* text) {
  const ssize_t ignored = write(STDERR_FILENO, text, std::strlen(text));
  static_cast<void>(ignored);  // there is nobody to tell
}

// Calls nothing that a signal handler may not.
void on_bus_error(int, siginfo_t* info, void*) {
  const auto* at = static_cast<const std::byte*>(info->si_addr);
  for (const auto& slot : g_files) {
    const Record* record = slot.load();
    if (record == nullptr || at < record->bytes.data() ||
        at >= record->bytes.data() + record->bytes.size()) {
      continue;
    }
    put("heddle: ");
    put(record->path.c_str());
    put(": bytes of the file are gone: it was cut short while in use, or its disk fails; get the "
        "whole file and start again. To exchange a file that is in use, write another one and "
        "rename it\n");
    _exit(static_cast<int>(ErrorKind::data));
  }
  signal(SIGBUS, SIG_DFL);  // not ours: the instruction is run again, and ends the program
}

bool is_same_time(const timespec& a, const timespec& b) {
  return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

// The file that was opened, wherever its name points now. Not st_ctime: a file that is removed or
// replaced by another gets a new one, and may be.
void check_unchanged(const Record& record) {
  struct stat now;
  if (fstat(record.fd, &now) != 0) fail_errno("cannot look at", record.path, errno);
  const struct stat& then = record.as_opened;
  if (now.st_size == then.st_size && is_same_time(now.st_mtim, then.st_mtim)) return;
  fail(ErrorKind::data,
       "{}: the file was written to while in use (it had {} bytes when it was opened and has {} "
       "now), so that what was read of it no longer fits together; start again. To exchange a "
       "file that is in use, write another one and rename it",
       record.path, then.st_size, now.st_size);
}

}  // namespace

MappedFile::MappedFile(const std::string& path, Mapping mapping) : path_(path), mapping_(mapping) {
  // Refuses folders and pipes.
  check(file_size(path) > 0, ErrorKind::data, "{}: the file is empty (0 bytes)", path);
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) fail_errno("cannot open", path, errno);
  struct stat opened = {};
  fstat(fd, &opened);  // where it fails the size is 0, and mmap() says so
  const auto size = static_cast<size_t>(opened.st_size);
  // MAP_NORESERVE: pages that nobody writes to need no memory beside the system's cache.
  const bool own = mapping == Mapping::own_copy;
  void* start = mmap(nullptr, size, own ? PROT_READ | PROT_WRITE : PROT_READ,
                     MAP_PRIVATE | (own ? MAP_NORESERVE : 0), fd, 0);
  if (start == MAP_FAILED) {
    const int error = errno;
    close(fd);
    fail_errno("cannot map into memory", path, error);
  }
  bytes_ = {static_cast<std::byte*>(start), size};
  add_record({bytes_, path, fd, opened});
}

MappedFile::~MappedFile() {
  if (bytes_.empty()) return;
  remove_record(bytes_);
  munmap(bytes_.data(), bytes_.size());
}

std::span<std::byte> MappedFile::writable_bytes() {
  check(mapping_ == Mapping::own_copy, ErrorKind::internal, "{}: mapped read only", path_);
  return bytes_;
}

MappedFile::MappedFile(MappedFile&& other) noexcept { *this = std::move(other); }

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(bytes_, other.bytes_);
  std::swap(mapping_, other.mapping_);
  return *this;
}

void check_mapped_files() {
  const std::lock_guard lock(g_mutex);
  for (const auto& slot : g_files) {
    if (const Record* const record = slot.load()) check_unchanged(*record);
  }
}

void explain_cut_files() {
  struct sigaction action = {};
  action.sa_sigaction = on_bus_error;
  action.sa_flags = SA_SIGINFO;
  sigemptyset(&action.sa_mask);
  sigaction(SIGBUS, &action, nullptr);
}

}  // namespace heddle
